package simulate

import (
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/pyjson"
)

// fact is the key that a metric's evidence is under.
const fact = "benchmark_measurement"

func protocolBreaks() []mutation {
	return []mutation{{
		Break: Break{
			Rule:     finding.ProtocolMismatch,
			How:      "the last rank's file has another content seed; in a legacy run it alone has a protocol",
			MinRanks: 2,
		},
		document: inVictim(func(r *run, doc pyjson.Object) pyjson.Object {
			if r.evidence == legacy {
				return append(doc, pyjson.Member{Key: "measurement_protocol", Value: r.protocol()})
			}
			set(doc, "1", "measurement_protocol", "content_seed")
			return doc
		}),
	}, {
		Break:    Break{Rule: finding.ProtocolInvalid, How: "every file's protocol has schema version 2", Evidence: true},
		document: everywhere(put(2, "measurement_protocol", "schema_version")),
	}, {
		Break:   Break{Rule: finding.ProtocolUndeclared, How: "a legacy run has the measurement of one metric"},
		prepare: func(r *run) { r.evidence = legacy },
		fpms:    addMeasurement,
	}, {
		Break: Break{
			Rule:     finding.ProtocolContract,
			How:      "every file's protocol has the samples in a field of another name",
			Evidence: true,
		},
		document: everywhere(put("sample", "measurement_protocol", "execution_evidence", "sample_field")),
	}, {
		Break: Break{
			Rule: finding.ProtocolContractUndeclared,
			How:  "no file declares execution evidence, and the last rank's has a warmup ledger",
		},
		prepare: func(r *run) { r.evidence = min(r.evidence, measured) },
		document: inVictim(func(r *run, doc pyjson.Object) pyjson.Object {
			return append(doc, pyjson.Member{Key: "warmup_evidence", Value: r.ledger(r.victim())})
		}),
	}}
}

// addMeasurement gives a legacy metric the identity of a measurement and no samples.
func addMeasurement(r *run, position, rank int, fpms pyjson.Array) pyjson.Array {
	return inFirst(func(fpm pyjson.Object) pyjson.Object {
		return append(fpm, pyjson.Member{Key: fact, Value: pyjson.Object{
			{Key: "schema_version", Value: 1},
			{Key: "point_key", Value: r.grid[position].contentKey()},
			{Key: "dp_rank", Value: rank},
		}})
	})(r, position, rank, fpms)
}

func measurementBreaks() []mutation {
	return []mutation{{
		Break: Break{
			Rule:     finding.MeasurementMissing,
			How:      "a metric lacks its measurement, in the last rank's results and in the groups",
			Evidence: true,
		},
		fpms: inFirst(func(fpm pyjson.Object) pyjson.Object { return without(fpm, fact) }),
	}, {
		Break: Break{
			Rule:     finding.MeasurementIdentity,
			How:      "a measurement has another point's key, in the last rank's results and in the groups",
			Evidence: true,
		},
		fpms: putFirst(strings.Repeat("0", 64), fact, "point_key"),
	}}
}

// sampleBreaks change the first measurement of the last rank, in its results and in the
// groups alike.
func sampleBreaks() []mutation {
	return []mutation{{
		Break: Break{Rule: finding.SampleCount, How: "a measurement has more raw samples than it expected", Evidence: true},
		fpms: inFirst(func(fpm pyjson.Object) pyjson.Object {
			expected := at(fpm, fact, "expected_internal_samples")
			*expected = (*expected).(int) - 1
			return fpm
		}),
	}, {
		Break: Break{Rule: finding.SampleIdentity, How: "a raw sample is of another worker", Evidence: true},
		fpms:  putFirst("0", fact, "raw_fpms", 0, "worker_id"),
	}, {
		Break: Break{Rule: finding.SampleIndex, How: "a raw sample has another index than its position", Evidence: true},
		fpms:  putFirst(1, fact, "raw_fpms", 0, "benchmark_sample", "sample_index"),
	}, {
		Break: Break{Rule: finding.SampleTiming, How: "a raw sample's times are a second further apart than its wall time", Evidence: true},
		fpms: inFirst(func(fpm pyjson.Object) pyjson.Object {
			start := at(fpm, fact, "raw_fpms", 0, "benchmark_sample", "timing", "start_monotonic")
			*start = (*start).(float64) - 1
			return fpm
		}),
	}, {
		Break: Break{Rule: finding.SampleCUDAGraph, How: "a raw sample's padding does not add up", Evidence: true},
		fpms:  putFirst(graph("observed", "FULL", 1, 2, 0), fact, "raw_fpms", 0, "benchmark_sample", "cudagraph"),
	}, {
		Break: Break{Rule: finding.SampleReduction, How: "an estimate's method is unknown", Evidence: true},
		fpms:  putFirst("mean", fact, "estimate", "method"),
	}, {
		Break: Break{Rule: finding.SampleEstimate, How: "a measurement's raw samples took twice its wall time", Evidence: true},
		fpms:  inFirst(slowRaws),
	}}
}

// slowRaws doubles the wall times of a metric's raw samples by starting them earlier. The
// retained wall time stays, and with it the group's and every sum.
func slowRaws(fpm pyjson.Object) pyjson.Object {
	for _, raw := range (*at(fpm, fact, "raw_fpms")).(pyjson.Array) {
		wall := at(raw, "wall_time")
		doubled := 2 * (*wall).(float64)
		*wall = doubled
		timing := *at(raw, "benchmark_sample", "timing")
		set(timing, (*at(timing, "end_monotonic")).(float64)-doubled, "start_monotonic")
	}
	return fpm
}

func warmupBreaks() []mutation {
	return []mutation{{
		Break:    Break{Rule: finding.WarmupLedger, How: "the last rank's ledger has an unknown status", Evidence: true},
		document: inVictim(put("incomplete", "warmup_evidence", "status")),
	}, {
		Break:  Break{Rule: finding.WarmupRecord, How: "a record of the last rank's ledger has an unknown status", Evidence: true},
		record: inFirstRecord("done", "status"),
	}, {
		Break:  Break{Rule: finding.WarmupRange, How: "a completed record of the last rank's ledger has no end", Evidence: true},
		record: inFirstRecord(nil, "forward_index_end"),
	}, {
		Break:  Break{Rule: finding.WarmupCount, How: "a record of the last rank's ledger counts too many forward passes", Evidence: true},
		record: inFirstRecord(globalForwards+1, "observed_forward_count"),
	}, {
		Break: Break{
			Rule:     finding.WarmupReference,
			How:      "a measurement does not say which warmups preceded it, in the last rank's results and in the groups",
			Evidence: true,
		},
		fpms: putFirst(nil, fact, "preparation", "warmup_records_before"),
	}, {
		Break: Break{Rule: finding.WarmupOverlap, How: "the last rank's first warmup is still running", Evidence: true},
		record: func(i int, record pyjson.Object) pyjson.Object {
			if i == 0 {
				set(record, "running", "status")
				set(record, nil, "forward_index_end")
			}
			return record
		},
	}}
}
