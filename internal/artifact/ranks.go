package artifact

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// RankSet is a set of DP ranks, ascending and without repetition.
type RankSet []int

// ParseRanks reads a rank set as it is typed: ranks and ranges of ranks, separated by
// commas, such as 0-3,7. Order and repetition do not matter. Ranks are decimal numbers
// from 0 to [MaxRank]; the set is never empty.
func ParseRanks(s string) (RankSet, error) {
	var member [MaxRank + 1]bool
	for item := range strings.SplitSeq(s, ",") {
		first, last, err := parseRange(item)
		if err != nil {
			return nil, fmt.Errorf("rank set %q: %w; write ranks and ranges, such as 0-3,7", s, err)
		}
		for r := first; r <= last; r++ {
			member[r] = true
		}
	}
	var set RankSet
	for r, in := range member {
		if in {
			set = append(set, r)
		}
	}
	return set, nil
}

func parseRange(item string) (first, last int, err error) {
	from, to, isRange := strings.Cut(item, "-")
	if !isRange {
		to = from
	}
	if first, err = parseRank(from, item); err != nil {
		return 0, 0, err
	}
	if last, err = parseRank(to, item); err != nil {
		return 0, 0, err
	}
	if first > last {
		return 0, 0, fmt.Errorf("the range %s runs backwards", item)
	}
	return first, last, nil
}

func parseRank(s, item string) (int, error) {
	if s == "" && item == "" {
		return 0, errors.New("an item is empty")
	}
	if s == "" {
		return 0, fmt.Errorf("the range %s lacks an end", item)
	}
	if strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("%q is not a rank", s)
	}
	r, err := strconv.Atoi(s)
	if err != nil || r > MaxRank {
		return 0, fmt.Errorf("rank %s is above the highest, %d", s, MaxRank)
	}
	return r, nil
}

// Contains reports whether rank r is in the set.
func (s RankSet) Contains(r int) bool {
	_, found := slices.BinarySearch(s, r)
	return found
}

// String returns the set as [ParseRanks] reads it, in the shortest form: 0-3,7.
func (s RankSet) String() string {
	var text []byte
	for i := 0; i < len(s); {
		end := i
		for end+1 < len(s) && s[end+1] == s[end]+1 {
			end++
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(s[i]), 10)
		if end > i {
			text = append(text, '-')
			text = strconv.AppendInt(text, int64(s[end]), 10)
		}
		i = end + 1
	}
	return string(text)
}
