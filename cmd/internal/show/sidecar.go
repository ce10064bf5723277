package show

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// Sidecar is what a worker-probe sidecar records, as it records it: nothing is computed
// again from the replies, for that is a judgement.
type Sidecar struct {
	RunID     string
	Merged    string // merged_output_path
	RankFiles int
	View      View     // of all ranks that the merged artifact expects
	Replies   []Reply  // at most maxReplies
	Total     int      // replies
	Ranks     []RankOf // the views of the source ranks, by rank
}

// View is what a probe established about some ranks.
type View struct {
	Resolution string `json:"resolution"`
	Error      string `json:"error"` // why nothing was observed; may be empty
	Complete   bool   `json:"complete"`
	Expected   []int  `json:"expected_dp_ranks"`
	PerDP      int64  `json:"expected_workers_per_dp"` // -1 unknown
	Observed   int    `json:"observed_workers"`
	Missing    []int  `json:"missing_dp_ranks"`
	Disagree   int    `json:"disagreements"`
	Attention  string `json:"attention_backend"` // empty where it is not resolved
}

// RankOf is the view of one source rank.
type RankOf struct {
	Rank int    `json:"dp_rank"`
	File string `json:"rank_file"`
	View View   `json:"view"`
}

// Reply is what one worker said. Texts are empty where it said nothing.
type Reply struct {
	DPRank       string   `json:"dp_rank"`
	WorkerRank   string   `json:"worker_rank"`
	TPRank       string   `json:"tp_rank"`
	PPRank       string   `json:"pp_rank"`
	PCPRank      string   `json:"pcp_rank"`
	Backends     []string `json:"attention_backends"` // the different ones
	Layers       int      `json:"attention_layers"`
	MLAPrefill   string   `json:"mla_prefill_backend"`
	Mode         string   `json:"cudagraph_mode"`
	CaptureSizes int      `json:"cudagraph_capture_sizes"` // how many
	CaptureFails int      `json:"capture_errors"`          // how many
	Issues       []string `json:"issues"`
}

const (
	maxReplies = 10_000
	maxFew     = 32   // of the different backends and issues of a reply
	maxText    = 1000 // bytes of a text
)

// readSidecar reads a sidecar whose text was checked. A part that is missing or mistyped is
// left out.
func readSidecar(src io.ReaderAt) (*Sidecar, error) {
	d := &sidecarReader{s: jsonstream.New(src, 0, 0, jsonstream.Trusted, jsonstream.Limits{})}
	d.out.View.PerDP = -1
	err := d.object(func(name string) (err error) {
		switch name {
		case "run_id":
			d.out.RunID, err = d.text()
		case "merged_output_path":
			d.out.Merged, err = d.text()
		case "rank_files":
			_, _, err = d.s.Array(func(int) error {
				d.out.RankFiles++
				return d.skip()
			})
		case "merged", "engine": // in an engine object older builds had it
			err = d.view(&d.out.View, true)
		case "ranks":
			err = d.ranks()
		default:
			err = d.skip()
		}
		return err
	})
	slices.SortFunc(d.out.Ranks, func(a, b RankOf) int { return cmp.Compare(a.Rank, b.Rank) })
	return &d.out, err
}

type sidecarReader struct {
	s   *jsonstream.Scanner
	out Sidecar
}

func (d *sidecarReader) object(fn func(name string) error) error {
	_, _, err := d.s.Object(func(name []byte) error { return fn(string(name)) })
	return err
}

func (d *sidecarReader) skip() error {
	_, err := d.s.Skip()
	return err
}

// text reads a string; anything else is the empty one.
func (d *sidecarReader) text() (string, error) {
	v, err := d.s.Scalar()
	text, _ := v.Text()
	return clip(text), err
}

// clip cuts a text that is longer than anything people read.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// literal reads a scalar as it stands: numbers and null, strings without quotes.
func (d *sidecarReader) literal() (string, error) {
	v, err := d.s.Scalar()
	if text, ok := v.Text(); ok {
		return clip(text), err
	}
	return clip(string(v.Raw)), err
}

func (d *sidecarReader) ranks() error {
	return d.object(func(name string) error {
		rank, err := strconv.Atoi(name)
		if err != nil || rank < 0 || rank > artifact.MaxRank || len(d.out.Ranks) > artifact.MaxRank {
			return d.skip()
		}
		of := RankOf{Rank: rank, View: View{PerDP: -1}}
		err = d.members(&of.View, false, &of.File)
		d.out.Ranks = append(d.out.Ranks, of)
		return err
	})
}

func (d *sidecarReader) view(v *View, replies bool) error { return d.members(v, replies, new(string)) }

func (d *sidecarReader) members(v *View, replies bool, file *string) error {
	return d.object(func(name string) (err error) {
		switch name {
		case "rank_file":
			*file, err = d.text()
		case "resolution":
			v.Resolution, err = d.text()
		case "attention":
			err = d.object(func(name string) (err error) {
				if name == "backend_resolved" {
					v.Attention, err = d.text()
					return err
				}
				return d.skip()
			})
		case "worker_probe":
			err = d.workerProbe(v, replies)
		case "engine":
			err = d.members(v, replies, file)
		default:
			err = d.skip()
		}
		return err
	})
}

func (d *sidecarReader) workerProbe(v *View, replies bool) error {
	return d.object(func(name string) (err error) {
		switch {
		case name == "error":
			v.Error, err = d.text()
		case name == "coverage":
			err = d.coverage(v)
		case name == "disagreements":
			_, _, err = d.s.Array(func(int) error { v.Disagree++; return d.skip() })
		case name == "responses" && replies:
			_, _, err = d.s.Array(func(int) error { return d.reply() })
		default:
			err = d.skip()
		}
		return err
	})
}

func (d *sidecarReader) coverage(v *View) error {
	return d.object(func(name string) (err error) {
		switch name {
		case "complete":
			value, err := d.s.Scalar()
			v.Complete = value.Kind == jsontext.KindTrue
			return err
		case "expected_dp_ranks":
			v.Expected, err = d.rankList()
		case "missing_dp_ranks":
			v.Missing, err = d.rankList()
		case "expected_workers_per_dp":
			f, err := d.s.Field()
			if f.NonNegative() {
				v.PerDP = f.Int
			}
			return err
		case "observed_workers":
			_, _, err = d.s.Array(func(int) error { v.Observed++; return d.skip() })
		default:
			err = d.skip()
		}
		return err
	})
}

func (d *sidecarReader) rankList() (ranks []int, err error) {
	_, _, err = d.s.Array(func(int) error {
		f, err := d.s.Field()
		if f.NonNegative() && f.Int <= artifact.MaxRank && len(ranks) <= artifact.MaxRank {
			ranks = append(ranks, int(f.Int))
		}
		return err
	})
	slices.Sort(ranks)
	return slices.Compact(ranks), err
}

// reply reads one entry of the responses.
func (d *sidecarReader) reply() error {
	d.out.Total++
	if len(d.out.Replies) >= maxReplies {
		return d.skip()
	}
	r := Reply{Backends: []string{}, Issues: []string{}}
	err := d.object(func(name string) (err error) {
		switch name {
		case "response":
			err = d.response(&r)
		case "issues":
			_, _, err = d.s.Array(func(int) error {
				text, err := d.text()
				r.Issues = few(r.Issues, text)
				return err
			})
		default:
			err = d.skip()
		}
		return err
	})
	d.out.Replies = append(d.out.Replies, r)
	return err
}

// few adds a text to a short list of different ones.
func few(list []string, text string) []string {
	if len(list) < maxFew && !slices.Contains(list, text) {
		return append(list, text)
	}
	return list
}

func (d *sidecarReader) response(r *Reply) error {
	fields := map[string]*string{
		"dp_rank": &r.DPRank, "worker_rank": &r.WorkerRank, "tp_rank": &r.TPRank, "pp_rank": &r.PPRank, "pcp_rank": &r.PCPRank,
		"mla_prefill_backend": &r.MLAPrefill, "cudagraph_mode_resolved": &r.Mode,
	}
	return d.object(func(name string) (err error) {
		if to := fields[name]; to != nil {
			*to, err = d.literal()
			return err
		}
		switch name {
		case "attention_backends":
			err = d.object(func(string) error {
				r.Layers++
				text, err := d.text()
				r.Backends = few(r.Backends, text)
				return err
			})
			slices.Sort(r.Backends)
		case "cudagraph_capture_sizes_resolved":
			_, _, err = d.s.Array(func(int) error { r.CaptureSizes++; return d.skip() })
		case "capture_errors":
			err = d.object(func(string) error { r.CaptureFails++; return d.skip() })
		default:
			err = d.skip()
		}
		return err
	})
}
