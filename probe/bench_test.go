package probe

import (
	"fmt"
	"testing"
)

// BenchmarkCheck checks the sidecar of 16 ranks of 8 workers.
func BenchmarkCheck(b *testing.B) {
	merged := place(b, artifactText(16, 8, 1, 1))
	var replies []string
	for i := range 128 {
		layers := ""
		for l := range 61 {
			layers += fmt.Sprintf(`"model.layers.%d.self_attn.attn": "FLASHINFER_MLA", `, l)
		}
		replies = append(replies, answer(i/8, fmt.Sprintf(`"worker_rank": %d`, i%8), fmt.Sprintf(`"tp_rank": %d`, i%8), `"attention_backends": {`+layers[:len(layers)-2]+`}`))
	}
	sound(b, Options{Merged: merged, Probe: given(list(replies...))})
	b.SetBytes(int64(len(load(b, SidecarPath(merged)))))
	for b.Loop() {
		sound(b, Options{Merged: merged})
	}
}
