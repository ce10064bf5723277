package schemas_test

import (
	"os"
	"testing"

	"github.com/fpm-project/fpm/internal/simulate"
	"github.com/fpm-project/fpm/schemas"
)

// BenchmarkStream checks a rank artifact of a few megabytes.
func BenchmarkStream(b *testing.B) {
	run, err := simulate.Run(b.Context(), simulate.Options{Dir: b.TempDir(), Ranks: 4, Points: 100, Raw: 4})
	if err != nil {
		b.Fatal(err)
	}
	file, err := os.Open(run.Files[0])
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	s, err := schemas.CompileStream("rank-artifact")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(run.Bytes / 4)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Check(file, func(schemas.Located) {}); err != nil {
			b.Fatal(err)
		}
	}
}
