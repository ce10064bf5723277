package show

import (
	"slices"
	"strconv"

	"github.com/fpm-project/fpm/internal/inspect"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/table"
)

// maxSettings bounds the settings of an engine block that are listed.
const maxSettings = 10_000

// setting is one value of the engine block, and who says so.
type setting struct {
	path   string
	values []inspect.Group
}

// settings flattens the engine blocks of all artifacts, in the order of the first.
func (d *Document) settings() (list []setting) {
	at := map[string]int{}
	values := make([]map[string]string, len(d.Facts))
	for i, f := range d.Facts {
		values[i] = map[string]string{}
		flatten(f.Blocks["engine"], "", func(path, value string) {
			if _, seen := at[path]; !seen && len(list) < maxSettings {
				at[path] = len(list)
				list = append(list, setting{path: path})
			}
			values[i][path] = value
		})
	}
	index := map[*inspect.Facts]int{}
	for i, f := range d.Facts {
		index[f] = i
	}
	for i := range list {
		list[i].values = inspect.GroupBy(d.Facts, func(f *inspect.Facts) string {
			if value, ok := values[index[f]][list[i].path]; ok {
				return value
			}
			if f.Blocks["engine"] == nil {
				return "" // it has no block that could say so
			}
			return "absent"
		})
	}
	return list
}

// flatten calls yield for each value that is no object, with its dotted path. A list of
// scalars is one value.
func flatten(v *jsonvalue.Value, path string, yield func(path, value string)) {
	if v == nil {
		return
	}
	switch {
	case v.Kind == jsonvalue.Object && len(v.Members) > 0:
		for i := range v.Members {
			flatten(&v.Members[i].Value, join(path, clip(v.Members[i].Name)), yield)
		}
	case v.Kind == jsonvalue.Array && hasObjects(v):
		for i := range v.Elems {
			flatten(&v.Elems[i], join(path, strconv.Itoa(i)), yield)
		}
	default:
		yield(path, v.Excerpt(maxText))
	}
}

func hasObjects(v *jsonvalue.Value) bool {
	for i := range v.Elems {
		if v.Elems[i].Kind == jsonvalue.Object {
			return true
		}
	}
	return false
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// engine is the table of the engine block.
func (d *Document) engine() *table.Table {
	t := &table.Table{Noun: "settings", Columns: []table.Column{{Title: "setting", Flex: true}, {Title: "value", Flex: true}, {Title: "said by", Priority: 1}}}
	for _, s := range d.settings() {
		said := 0
		for _, g := range s.values {
			said += len(g.Ranks) + len(g.Files)
		}
		for i, g := range s.values {
			row := []string{s.path, g.Text, ""}
			if len(s.values) > 1 || said < len(d.Facts) {
				row[2] = g.Who()
			}
			if i > 0 {
				row[0] = ""
			}
			t.Rows = append(t.Rows, row)
		}
	}
	if len(t.Rows) == 0 {
		t.Rows = [][]string{{"(none)", "no artifact has an engine block"}}
		if slices.ContainsFunc(d.Facts, func(f *inspect.Facts) bool { return slices.Contains(f.TooLarge, "engine") }) {
			t.Rows = [][]string{{"(left out)", "the engine block is too large to be looked at"}}
		}
	}
	return t
}
