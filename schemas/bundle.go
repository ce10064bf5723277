package schemas

import (
	"bytes"
	"regexp"
	"slices"
)

// Bundle returns the text of the schema with a name together with those that it refers
// to, as definitions named by their $id: one document that any validator of the draft can
// use by itself. ok is false when there is no such schema.
func Bundle(name string) (text []byte, ok bool) {
	text, ok = Get(name)
	if !ok {
		return nil, false
	}
	info, _ := About(name)
	const end = "\n  }\n}\n" // of the definitions, which come last
	text = bytes.TrimSuffix(text, []byte(end))
	for _, id := range referredTo(info.ID) {
		other, _ := byID(id)
		text = append(text, ",\n    \""+id+"\": "...)
		text = append(text, bytes.ReplaceAll(bytes.TrimSpace(other), []byte("\n"), []byte("\n    "))...)
	}
	return append(text, end...), true
}

// referredTo returns the $id of every other schema that one refers to, itself or through
// others, sorted.
func referredTo(id string) []string {
	refs := regexp.MustCompile(`"\$ref": "(urn:[^#"]*)`)
	all := []string{id}
	for i := 0; i < len(all); i++ {
		text, _ := byID(all[i])
		for _, m := range refs.FindAllSubmatch(text, -1) {
			if ref := string(m[1]); !slices.Contains(all, ref) {
				all = append(all, ref)
			}
		}
	}
	slices.Sort(all[1:])
	return all[1:]
}
