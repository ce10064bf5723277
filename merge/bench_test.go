package merge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fpm-project/fpm/internal/simulate"
)

// BenchmarkRun merges synthetic runs of several shapes, durable write included. Bytes are
// those of all rank files.
func BenchmarkRun(b *testing.B) {
	for _, shape := range []struct{ ranks, points int }{{1, 1000}, {4, 250}, {8, 100}} {
		b.Run(fmt.Sprintf("%dx%d", shape.ranks, shape.points), func(b *testing.B) {
			dir := b.TempDir()
			run, err := simulate.Run(context.Background(), simulate.Options{Dir: dir, Ranks: shape.ranks, Points: shape.points, Raw: 4})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(run.Bytes)
			b.ReportAllocs()
			for b.Loop() {
				result, err := Run(context.Background(), Options{Inputs: []string{run.Files[0]}, Output: filepath.Join(dir, "merged.json")})
				if err != nil || result.Errors > 0 || len(result.Failures) > 0 {
					b.Fatal(err, result)
				}
			}
		})
	}
}

// BenchmarkWrite writes the merged document of a run that was read before.
func BenchmarkWrite(b *testing.B) {
	dir := b.TempDir()
	run, err := simulate.Run(context.Background(), simulate.Options{Dir: dir, Ranks: 4, Points: 250, Raw: 4})
	if err != nil {
		b.Fatal(err)
	}
	r := newRun(context.Background(), Options{Inputs: []string{run.Files[0]}, Output: filepath.Join(dir, "merged.json")})
	defer r.close()
	if r.merge(); r.out.Errors() > 0 || len(r.failures) > 0 {
		b.Fatal(r.out.Findings(), r.failures)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	for b.Loop() {
		d := newDocument(r, null, "merged.json")
		if err := d.write(); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(d.written)
	}
}
