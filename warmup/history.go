package warmup

import (
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// Text is a string of a ledger and where it stands. The text is unescaped, and empty
// where the value is no string.
type Text struct {
	jsonstream.Field
	Text string
}

// Record is one record of a ledger, in typed form. A value that is absent has kind 0.
type Record struct {
	At              int // position in records
	Object          bool
	Offset          int64
	Kind, Status    Text
	Start, End      jsonstream.Field // forward_index_start, forward_index_end
	Count           jsonstream.Field // observed_forward_count
	CompletedBefore jsonstream.Field // completed_points_before
	Shape           jsonstream.Span  // of requested_shape; empty when it is absent
	Verdict, Reason Text             // of the validation
}

// Outline is what a ledger is beside its records.
type Outline struct {
	Object  bool
	Offset  int64
	Status  Text
	List    jsonstream.Field // kind and place of records
	Records int
}

// Recorded tells whether the ledger is a recorded history.
func (o *Outline) Recorded() bool {
	return o.Object && o.Status.Text == "recorded" && o.List.Kind == '['
}

// Walk reads the ledger that comes next, without judging it, and calls fn for each
// record. What fn gets is valid for the call. An error is one of the document's text, or
// of fn.
func Walk(s *jsonstream.Scanner, fn func(*Record) error) (o Outline, err error) {
	var x Record
	o.Offset, o.Object, err = s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "status":
			o.Status, err = readText(s)
		case "records":
			o.List.Kind, o.Records = s.Peek(), 0
			o.List.Offset, _, err = s.Array(func(i int) error {
				x = Record{At: i}
				if err := x.read(s); err != nil {
					return err
				}
				o.Records++
				return fn(&x)
			})
		default:
			_, err = s.Skip()
		}
		return err
	})
	return o, err
}

func (x *Record) read(s *jsonstream.Scanner) (err error) {
	x.Offset, x.Object, err = s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "kind":
			x.Kind, err = readText(s)
		case "status":
			x.Status, err = readText(s)
		case "forward_index_start":
			x.Start, err = s.Field()
		case "forward_index_end":
			x.End, err = s.Field()
		case "observed_forward_count":
			x.Count, err = s.Field()
		case "completed_points_before":
			x.CompletedBefore, err = s.Field()
		case "requested_shape":
			x.Shape, err = s.Skip()
		case "validation":
			err = x.readValidation(s)
		default:
			_, err = s.Skip()
		}
		return err
	})
	return err
}

func (x *Record) readValidation(s *jsonstream.Scanner) error {
	_, _, err := s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "status":
			x.Verdict, err = readText(s)
		case "reason":
			x.Reason, err = readText(s)
		default:
			_, err = s.Skip()
		}
		return err
	})
	return err
}

func readText(s *jsonstream.Scanner) (Text, error) {
	v, err := s.Scalar()
	t := Text{Field: v.Field()}
	t.Text, _ = v.Text()
	return t, err
}
