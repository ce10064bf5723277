package artifact

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNames(t *testing.T) {
	tests := []struct {
		base                          string
		rank0, rank3, merged, merged8 string
	}{
		{"dir/stem.json", "dir/stem.json", "dir/stem_dp3.json", "dir/stem_merged.json", "dir/stem_dp8_merged.json"},
		{"a.b.json", "a.b.json", "a.b_dp3.json", "a.b_merged.json", "a.b_dp8_merged.json"},
		{"stem.json.gz", "stem.json", "stem_dp3.json", "stem_merged.json", "stem_dp8_merged.json"},
		{"stem.json.zst", "stem.json", "stem_dp3.json", "stem_merged.json", "stem_dp8_merged.json"},
		{"noext", "noext", "noext_dp3", "noext_merged", "noext_dp8_merged"},
		{"noext.gz", "noext", "noext_dp3", "noext_merged", "noext_dp8_merged"},
		{".hidden", ".hidden", ".hidden_dp3", ".hidden_merged", ".hidden_dp8_merged"},
		{".hidden.json", ".hidden.json", ".hidden_dp3.json", ".hidden_merged.json", ".hidden_dp8_merged.json"},
		{"dot.d/stem", "dot.d/stem", "dot.d/stem_dp3", "dot.d/stem_merged", "dot.d/stem_dp8_merged"},
		{"./x//../s.json", "./x//../s.json", "./x//../s_dp3.json", "./x//../s_merged.json", "./x//../s_dp8_merged.json"},
		{"end.", "end.", "end_dp3.", "end_merged.", "end_dp8_merged."},
		{DefaultBase, DefaultBase, "/tmp/benchmark_results_dp3.json", "/tmp/benchmark_results_merged.json",
			"/tmp/benchmark_results_dp8_merged.json"},
	}
	for _, tt := range tests {
		base := ParseBase(tt.base)
		got := []string{base.Rank(0), base.Rank(3), base.Merged(0), base.Merged(8)}
		if diff := cmp.Diff([]string{tt.rank0, tt.rank3, tt.merged, tt.merged8}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.base, diff)
		}
	}
}

func TestSidecar(t *testing.T) {
	tests := []struct{ merged, want string }{
		{"dir/m.json", "dir/m_worker_probe.json"},
		{"a.b.json", "a.b_worker_probe.json"},
		{"dot.d/m", "dot.d/m_worker_probe"},
		{".m", ".m_worker_probe"},
	}
	for _, tt := range tests {
		if got := Sidecar(tt.merged); got != tt.want {
			t.Errorf("Sidecar(%s) = %s, want %s", tt.merged, got, tt.want)
		}
	}
}

func TestSplitRank(t *testing.T) {
	tests := []struct {
		path string
		base string // rank 0's path; empty when the name stands for no rank
		rank int
	}{
		{"dir/stem_dp3.json", "dir/stem.json", 3},
		{"dir/stem_dp3.json.gz", "dir/stem.json", 3},
		{"stem_dp65535.json.zst", "stem.json", 65535},
		{"stem_dp70000.json", "stem.json", 70000},
		{"stem_dp0.json", "stem.json", 0},
		{"a_dp1_dp2.json", "a_dp1.json", 2},
		{"stem_dp12", "stem", 12},
		{"_dp1_dp2", "_dp1", 2},
		{"stem.json", "", 0},
		{"stem_dp.json", "", 0},
		{"stem_dp03.json", "", 0},
		{"stem_dp00.json", "", 0},
		{"stem_dp-3.json", "", 0},
		{"stem_dp+3.json", "", 0},
		{"stem_dp3x.json", "", 0},
		{"stem_dp3.x.json", "", 0},
		{"stem_dp3_merged.json", "", 0},
		{"stem_dp1.5", "stem.5", 1},
		{"stem_DP3.json", "", 0},
		{"stemdp3.json", "", 0},
		{"_dp3.json", "", 0},
		{"stem_dp99999999999999999999.json", "stem.json", math.MaxInt},
		{"stem_dp٣.json", "", 0},
		{"dir_dp3/stem.json", "", 0},
		{"dir_dp3/", "", 0},
		{"", "", 0},
	}
	for _, tt := range tests {
		base, rank, ok := SplitRank(tt.path)
		if ok != (tt.base != "") || rank != tt.rank || base.Rank(0) != tt.base {
			t.Errorf("SplitRank(%q) = %q, %d, %v, want %q, %d", tt.path, base.Rank(0), rank, ok, tt.base, tt.rank)
		}
	}
}

// seeds are the names that the fuzz targets start from.
func seeds(f *testing.F) {
	f.Helper()
	for _, path := range []string{DefaultBase, "a.b.json", "x.gz", "x.json.zst", ".gz", "..gz", "a..gz", "a.gz.zst",
		"end.", "...", "dir/", "", "_dp3", "x_dp3.json.gz", "x_dp03.json", "x_dp1_dp2", "._dp3"} {
		f.Add(path, 3)
	}
}

// What a base path calls a rank's file is read back as that base and rank, compressed
// or not.
func FuzzParseBase(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, path string, rank int) {
		base := ParseBase(path)
		if trimmed := base.Rank(0); ParseBase(trimmed) != base || !strings.HasPrefix(path, trimmed) {
			t.Fatalf("%q has the base %q, which has the base %q", path, trimmed, ParseBase(trimmed).Rank(0))
		}
		if base.Stem == "" || rank < 1 {
			return
		}
		for _, suffix := range []string{"", ".gz", ".zst"} {
			name := base.Rank(rank) + suffix
			if got, r, ok := SplitRank(name); !ok || r != rank || got != base {
				t.Errorf("SplitRank(%q) = %q, %d, %v, want %q, %d", name, got, r, ok, base, rank)
			}
		}
		for _, merged := range []string{base.Merged(0), base.Merged(rank)} {
			if _, _, ok := SplitRank(merged); ok {
				t.Errorf("%q is taken for a rank file", merged)
			}
			if _, _, ok := SplitRank(Sidecar(merged)); ok {
				t.Errorf("%q is taken for a rank file", Sidecar(merged))
			}
		}
	})
}

// A name that stands for a rank is, without a compression suffix, the one that its base
// gives to that rank.
func FuzzSplitRank(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, path string, _ int) {
		base, rank, ok := SplitRank(path)
		if !ok {
			return
		}
		want := ParseBase(path).Rank(0)
		got := base.Rank(rank)
		if rank == 0 {
			got = base.Dir + base.Stem + "_dp0" + base.Ext
		}
		if rank == math.MaxInt {
			return // the number in the name is beyond any rank
		}
		if rank < 0 || got != want {
			t.Errorf("SplitRank(%q) = %q, %d, which is called %q", path, base, rank, got)
		}
	})
}

func TestLocate(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"r.json", "r_dp1.json.gz", "r_dp2.json.zst",
		"r_dp3.json", "r_dp3.json.gz", "r_dp4.json.gz", "r_dp4.json.zst", "r_dp6.json.gz"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(os.Symlink("r.json", filepath.Join(dir, "r_dp5.json")),
		os.Symlink("none", filepath.Join(dir, "r_dp6.json")))
	if err != nil {
		t.Fatal(err)
	}
	base := ParseBase(filepath.Join(dir, "r.json"))
	for rank, want := range map[int]string{0: "r.json", 1: "r_dp1.json.gz", 2: "r_dp2.json.zst", 5: "r_dp5.json",
		6: "r_dp6.json.gz"} {
		if got, err := Locate(base, rank); err != nil || got != filepath.Join(dir, want) {
			t.Errorf("rank %d: %s, %v, want %s", rank, got, err, want)
		}
	}
	for rank, want := range map[int]string{
		3: "rank 3 has more than one file: D/r_dp3.json and D/r_dp3.json.gz; remove or rename all but one",
		4: "rank 4 has more than one file: D/r_dp4.json.gz and D/r_dp4.json.zst; remove or rename all but one",
	} {
		_, err := Locate(base, rank)
		if !errors.Is(err, ErrTwoForms) || strings.ReplaceAll(err.Error(), dir, "D") != want {
			t.Errorf("rank %d: %v, want %s", rank, err, want)
		}
	}
	_, err = Locate(base, 9)
	want := "rank 9 has no file: there is no " + base.Rank(9) + " (nor one with .gz or .zst behind it)"
	if !errors.Is(err, fs.ErrNotExist) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	notDir := filepath.Join(dir, "r.json", "x.json")
	_, err = Locate(ParseBase(notDir), 0)
	if _, ok := errors.AsType[*LookupError](err); !ok || err.Error() != "cannot look for "+notDir+": not a directory" {
		t.Errorf("%v, want a LookupError", err)
	}
}

func TestParseRanks(t *testing.T) {
	tests := []struct {
		text  string
		want  RankSet
		short string
	}{
		{"0", RankSet{0}, "0"},
		{"0-3,7", RankSet{0, 1, 2, 3, 7}, "0-3,7"},
		{"7,3,1-2,2", RankSet{1, 2, 3, 7}, "1-3,7"},
		{"65535", RankSet{65535}, "65535"},
		{"5-5", RankSet{5}, "5"},
		{"4,5", RankSet{4, 5}, "4-5"},
		{"007", RankSet{7}, "7"},
	}
	for _, tt := range tests {
		got, err := ParseRanks(tt.text)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("ParseRanks(%q): %v (-want +got):\n%s", tt.text, err, diff)
		}
		if got.String() != tt.short {
			t.Errorf("ParseRanks(%q).String() = %q, want %q", tt.text, got, tt.short)
		}
	}
	all, err := ParseRanks("0-65535")
	if err != nil || len(all) != MaxRank+1 || all.String() != "0-65535" {
		t.Errorf("all ranks: %d, %v", len(all), err)
	}
}

func TestParseRanksErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "an item is empty"},
		{"0,", "an item is empty"},
		{",0", "an item is empty"},
		{"-", "the range - lacks an end"},
		{"3-", "the range 3- lacks an end"},
		{"-3", "the range -3 lacks an end"},
		{"3-1", "the range 3-1 runs backwards"},
		{"1-2-3", `"2-3" is not a rank`},
		{"a", `"a" is not a rank`},
		{"+1", `"+1" is not a rank`},
		{"1, 2", `" 2" is not a rank`},
		{"1.0", `"1.0" is not a rank`},
		{"٣", `"٣" is not a rank`},
		{"65536", "rank 65536 is above the highest, 65535"},
		{"0-65536", "rank 65536 is above the highest, 65535"},
		{"99999999999999999999", "rank 99999999999999999999 is above the highest, 65535"},
	}
	for _, tt := range tests {
		_, err := ParseRanks(tt.text)
		want := "rank set " + strconv.Quote(tt.text) + ": " + tt.want + "; write ranks and ranges, such as 0-3,7"
		if err == nil || err.Error() != want {
			t.Errorf("ParseRanks(%q) = %v, want %s", tt.text, err, want)
		}
	}
}

// A set that is read is ascending, within bounds, and comes back from its own text.
func FuzzParseRanks(f *testing.F) {
	for _, text := range []string{"0-3,7", "65535", "3-1", "", "1,,2", "007", "0-65535"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := ParseRanks(text)
		if err != nil {
			return
		}
		previous := -1
		for _, r := range set {
			if r <= previous || r > MaxRank || !set.Contains(r) {
				t.Fatalf("ParseRanks(%q) has %d after %d", text, r, previous)
			}
			if previous < r-1 && set.Contains(r-1) {
				t.Fatalf("ParseRanks(%q) contains %d without having it", text, r-1)
			}
			previous = r
		}
		again, err := ParseRanks(set.String())
		if err != nil || !slices.Equal(set, again) || len(set) == 0 {
			t.Errorf("ParseRanks(%q) is %q, which is %v, %v", text, set, again, err)
		}
	})
}
