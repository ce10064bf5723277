package main

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/fpm-project/fpm/schemas"
	"github.com/fpm-project/fpm/trace/record"
	"github.com/fpm-project/fpm/trace/wire"
)

// What a recorder writes for its manifest is one by the schema, with everything in it that
// there can be.
func TestManifestKeepsItsSchema(t *testing.T) {
	m := &record.Manifest{}
	fill(reflect.ValueOf(m).Elem())
	m.Schema, m.SchemaVersion, m.State, m.Mode = record.ManifestSchema, record.ManifestVersion, record.Stopped, wire.Sampled
	m.Previous.State = record.Recording
	rejected := map[string]uint64{}
	for _, reason := range wire.Reasons() {
		rejected[reason.String()] = 1
	}
	m.Endpoints[0].Rejected, m.Producers[0].Streams[0].Rejected = rejected, rejected
	var text bytes.Buffer
	if _, err := m.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	violations, err := schemas.Validate("trace-manifest", text.Bytes())
	if err != nil || len(violations) > 0 {
		t.Errorf("%v, %v\n%s", err, violations, text.String())
	}
}

// fill sets every exported field to something that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64:
		v.SetUint(7)
	}
}
