package simulate

import (
	"fmt"
	"slices"

	"github.com/fpm-project/fpm/internal/pyjson"
)

// at returns the place of a value in a document, by the keys and indices that lead there.
// It panics if nothing is there: the documents are made here, so that is a bug.
func at(v any, path ...any) *any {
	place := &v
	for _, step := range path {
		place = child(*place, step)
		if place == nil {
			panic(fmt.Sprintf("simulate: nothing at %v", path))
		}
	}
	return place
}

func child(v, step any) *any {
	switch v := v.(type) {
	case pyjson.Object:
		for i := range v {
			if v[i].Key == step {
				return &v[i].Value
			}
		}
	case pyjson.Array:
		if i, ok := step.(int); ok && i < len(v) {
			return &v[i]
		}
	}
	return nil
}

// set replaces a value that is there.
func set(doc, value any, path ...any) { *at(doc, path...) = value }

// add puts a member behind the others of the object at a path. The path is not empty: of
// a document itself append returns the longer one.
func add(doc any, key string, value any, path ...any) {
	place := place(doc, path)
	*place = append((*place).(pyjson.Object), pyjson.Member{Key: key, Value: value})
}

// drop removes a member of the object at a path, which is not empty either: see without.
func drop(doc any, key string, path ...any) {
	place := place(doc, path)
	*place = without((*place).(pyjson.Object), key)
}

func place(doc any, path []any) *any {
	if len(path) == 0 {
		panic("simulate: an object cannot be given another length in its own place")
	}
	return at(doc, path...)
}

// without returns the object less a member; o itself is of no more use.
func without(o pyjson.Object, key string) pyjson.Object {
	return slices.DeleteFunc(o, func(m pyjson.Member) bool { return m.Key == key })
}

// clone copies a value, and the containers in it, for a change that leaves it as it is.
func clone(v any) any {
	switch v := v.(type) {
	case pyjson.Object:
		c := slices.Clone(v)
		for i := range c {
			c[i].Value = clone(c[i].Value)
		}
		return c
	case pyjson.Array:
		c := slices.Clone(v)
		for i := range c {
			c[i] = clone(c[i])
		}
		return c
	}
	return v
}
