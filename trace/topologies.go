package trace

// Support says how the forward passes of a worker can be traced.
type Support string

// The kinds of support.
const (
	OverTCP   Support = "tcp"        // a ZMQ publisher on a TCP port per rank
	OverIPC   Support = "ipc"        // a ZMQ publisher on a Unix domain socket per rank
	InProcess Support = "in-process" // no socket: Dynamo's own writer records, and its segments can be read
	NoSupport Support = "none"       // nothing is measured
)

// Topology says whether the workers of one kind can be traced.
type Topology struct {
	Backend string
	Workers []string // kinds of workers
	Also    string   // which others these stand for, too; may be empty
	Support Support
	Tracing string // the same in words
}

// Topologies returns what can be traced, by backend and kind of worker.
func Topologies() []Topology {
	const noScheduler = "not supported: the FPM scheduler is not injected"
	return []Topology{
		{"vLLM", []string{"aggregated", "prefill", "decode"}, "native multimodal too", OverTCP, "supported, TCP"},
		{"vLLM", []string{"embedding", "multimodal encode", "headless"}, "", NoSupport, noScheduler},
		{"SGLang", []string{"aggregated", "prefill", "decode", "LLM diffusion"}, "multimodal without a dedicated encoder too", OverIPC, "supported, IPC"},
		{"SGLang", []string{"embedding", "dedicated multimodal encoder"}, "", NoSupport, "not supported"},
		{"SGLang", []string{"image diffusion", "video generation", "snapshot mode"}, "", NoSupport, "not supported"},
		{"TensorRT-LLM", []string{"aggregated", "prefill", "decode"}, "", InProcess, "supported by Dynamo's own writer only (in-process); its segments are read by every fpm trace reader"},
		{"mocker", []string{"direct publisher"}, "", InProcess, "as TensorRT-LLM"},
	}
}
