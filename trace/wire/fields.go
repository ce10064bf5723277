package wire

// field is a key of a payload that has rules, as an index into a schema. Its bit marks it
// as seen.
type field int

// The fields of a payload in the order in which publishers send them, with those of the
// two loads behind.
const (
	version field = iota
	workerID
	dpRank
	counterID
	wallTime
	scheduled
	queued
)

// The fields of a load, likewise.
const (
	numPrefillRequests field = iota
	sumPrefillTokens
	varPrefillLength
	sumPrefillKVTokens
	numDecodeRequests
	sumDecodeKVTokens
	varDecodeKVTokens
)

// schema is the known keys of one map. Publishers send them in this order, which is what
// the fast path of decoding expects; any order is accepted.
type schema []schemaKey

// schemaKey is a known key with what a JSON object puts before its value.
type schemaKey struct {
	name string
	json string
	rule rule
}

// rule is what the value of a known key must be.
type rule uint8

const (
	isVersion   rule = iota // the integer 1
	isString                // any string
	isIndex                 // an integer from 0 to the largest int64
	isCount                 // an integer from 0 to the largest uint64
	isMeasure               // a finite number, at least 0
	isScheduled             // a map after scheduledSchema
	isQueued                // a map after queuedSchema
)

// expectations say what a rule wants, for messages.
var expectations = [...]string{
	isVersion:   "the integer 1",
	isString:    "a string",
	isIndex:     "an integer from 0 to 9223372036854775807",
	isCount:     "an integer that is at least 0",
	isMeasure:   "a number that is at least 0",
	isScheduled: "a map",
	isQueued:    "a map",
}

func key(name string, r rule) schemaKey { return schemaKey{name, `"` + name + `":`, r} }

var payloadSchema = schema{
	version:   key("version", isVersion),
	workerID:  key("worker_id", isString),
	dpRank:    key("dp_rank", isIndex),
	counterID: key("counter_id", isIndex),
	wallTime:  key("wall_time", isMeasure),
	scheduled: key("scheduled_requests", isScheduled),
	queued:    key("queued_requests", isQueued),
}

var scheduledSchema = schema{
	numPrefillRequests: key("num_prefill_requests", isCount),
	sumPrefillTokens:   key("sum_prefill_tokens", isCount),
	varPrefillLength:   key("var_prefill_length", isMeasure),
	sumPrefillKVTokens: key("sum_prefill_kv_tokens", isCount),
	numDecodeRequests:  key("num_decode_requests", isCount),
	sumDecodeKVTokens:  key("sum_decode_kv_tokens", isCount),
	varDecodeKVTokens:  key("var_decode_kv_tokens", isMeasure),
}

// queuedSchema keeps the positions of scheduledSchema. A waiting request has no KV cache:
// sum_prefill_kv_tokens is no field there, and whoever sends it sends an unknown key.
var queuedSchema = schema{
	numPrefillRequests: scheduledSchema[numPrefillRequests],
	sumPrefillTokens:   scheduledSchema[sumPrefillTokens],
	varPrefillLength:   scheduledSchema[varPrefillLength],
	sumPrefillKVTokens: {},
	numDecodeRequests:  scheduledSchema[numDecodeRequests],
	sumDecodeKVTokens:  scheduledSchema[sumDecodeKVTokens],
	varDecodeKVTokens:  scheduledSchema[varDecodeKVTokens],
}

// find returns the known key with the given name, or -1. Names are told apart by their
// length first, so this is a handful of comparisons.
func (s schema) find(name []byte) field {
	if len(name) == 0 {
		return -1
	}
	for i := range s {
		if s[i].name == string(name) {
			return field(i)
		}
	}
	return -1
}

// all is the set of the fields that a map must have.
func (s schema) all() (set uint32) {
	for i := range s {
		if s[i].name != "" {
			set |= 1 << i
		}
	}
	return set
}

// set stores the value of a payload's own field. The value has passed its rule.
func (f *FPM) set(at field, v *value) {
	switch at {
	case dpRank:
		f.DPRank = int64(v.u)
	case counterID:
		f.CounterID = int64(v.u)
	case wallTime:
		f.WallTime = v.number()
	}
}

// set stores the value of a load's field. The value has passed its rule.
func (l *Load) set(at field, v *value) {
	switch at {
	case numPrefillRequests:
		l.NumPrefillRequests = v.u
	case sumPrefillTokens:
		l.SumPrefillTokens = v.u
	case varPrefillLength:
		l.VarPrefillLength = v.number()
	case sumPrefillKVTokens:
		l.SumPrefillKVTokens = v.u
	case numDecodeRequests:
		l.NumDecodeRequests = v.u
	case sumDecodeKVTokens:
		l.SumDecodeKVTokens = v.u
	case varDecodeKVTokens:
		l.VarDecodeKVTokens = v.number()
	}
}
