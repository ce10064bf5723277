package simulate

import "github.com/fpm-project/fpm/internal/pyjson"

// promptSlots is the largest number of prompts that a measurement records.
const promptSlots = 8

// fpms returns the one forward-pass metric that a rank keeps of a point, in the list that
// both its own results and the groups of all ranks have.
func (r *run) fpms(position int, key string, m *measurement) pyjson.Array {
	p := &r.grid[position]
	fpm := r.metric(p, m, m.wall, m.first)
	if r.evidence > legacy {
		fpm = append(fpm, pyjson.Member{Key: "benchmark_measurement", Value: r.evidenceOf(position, key, m)})
	}
	list := pyjson.Array{fpm}
	if r.change.fpms != nil {
		list = r.change.fpms(r, position, m.rank, list)
	}
	return list
}

// metric is a forward-pass metric with a wall time in seconds and the schedule of one of
// the samples.
func (r *run) metric(p *point, m *measurement, wall float64, scheduled int) pyjson.Object {
	return pyjson.Object{
		{Key: "version", Value: 1},
		{Key: "worker_id", Value: m.worker},
		{Key: "dp_rank", Value: m.rank},
		{Key: "counter_id", Value: p.id},
		{Key: "wall_time", Value: wall},
		{Key: "scheduled_requests", Value: p.scheduledAt(scheduled, len(m.samples))},
		{Key: "queued_requests", Value: queued()},
	}
}

// evidenceOf is the benchmark_measurement of a metric.
func (r *run) evidenceOf(position int, key string, m *measurement) pyjson.Object {
	p := &r.grid[position]
	raws := make(pyjson.Array, len(m.samples))
	selected := make(pyjson.Array, 0, len(m.samples))
	for i := range m.samples {
		raws[i] = r.rawMetric(p, m, i)
		if i >= m.first {
			selected = append(selected, i)
		}
	}
	return pyjson.Object{
		{Key: "schema_version", Value: 1},
		{Key: "point_key", Value: key},
		{Key: "dp_rank", Value: m.rank},
		{Key: "prompts", Value: p.prompts(roll(r.opt.Seed, forPrompts, position, m.rank))},
		{Key: "preparation", Value: pyjson.Object{
			{Key: "grid_digest", Value: r.digest},
			{Key: "completed_points_before", Value: position},
			{Key: "kv_seed_regime", Value: p.regime()},
			{Key: "warmup_records_before", Value: m.warmups},
		}},
		{Key: "expected_internal_samples", Value: len(m.samples)},
		{Key: "raw_fpms", Value: raws},
		{Key: "estimate", Value: pyjson.Object{
			{Key: "method", Value: m.method},
			{Key: "raw_sample_indices", Value: selected},
		}},
	}
}

// rawMetric is the metric of one sample, with the sample's own evidence.
func (r *run) rawMetric(p *point, m *measurement, i int) pyjson.Object {
	raw := r.metric(p, m, m.samples[i].wall, i)
	if r.evidence < executed {
		return raw
	}
	s := &m.samples[i]
	basis := "inter_output"
	if i == 0 {
		basis = "schedule_to_output"
	}
	return append(raw, pyjson.Member{Key: "benchmark_sample", Value: pyjson.Object{
		{Key: "sample_index", Value: i},
		{Key: "forward_index", Value: s.forward},
		{Key: "timing", Value: pyjson.Object{
			{Key: "basis", Value: basis},
			{Key: "start_monotonic", Value: s.start},
			{Key: "end_monotonic", Value: s.end},
		}},
		{Key: "cudagraph", Value: p.dispatch(s.observed)},
	}})
}

// dispatch is the graph dispatch of a forward pass at the point.
func (p *point) dispatch(observed bool) pyjson.Object {
	if !observed {
		return graph("unavailable", nil, nil, nil, nil)
	}
	mode, size := p.capture()
	tokens := p.graphTokens()
	size = max(size, tokens)
	return graph("observed", mode, tokens, size, size-tokens)
}

func graph(status string, mode, unpadded, padded, paddings any) pyjson.Object {
	return pyjson.Object{
		{Key: "status", Value: status},
		{Key: "runtime_mode", Value: mode},
		{Key: "num_unpadded_tokens", Value: unpadded},
		{Key: "num_padded_tokens", Value: padded},
		{Key: "num_paddings", Value: paddings},
	}
}

// prompts is what was injected for the point.
func (p *point) prompts(d *dice) pyjson.Object {
	requests := make(pyjson.Array, min(p.batch, promptSlots))
	for slot := range requests {
		tokens := share(p.tokens, p.batch, slot) + share(p.kv, p.batch, slot)
		if !p.prefill { // the last token of a context is decoded, not injected
			tokens = max(1, tokens-1)
		}
		requests[slot] = pyjson.Object{
			{Key: "slot", Value: slot},
			{Key: "num_tokens", Value: tokens},
			{Key: "sha256", Value: d.hex(32)},
		}
	}
	return pyjson.Object{
		{Key: "status", Value: "recorded"},
		{Key: "sha256", Value: digest(requests)},
		{Key: "requests", Value: requests},
	}
}

// share is what the i-th of count gets of a total.
func share(total, count, i int) int {
	if i < total%count {
		return total/count + 1
	}
	return total / count
}

// scheduledAt is what was scheduled for the i-th of a measurement's samples. A context
// grows by a token a step; with several, the second is the one at the point.
func (p *point) scheduledAt(i, samples int) pyjson.Object {
	if p.prefill {
		lengths := spread{total: p.tokens + p.kv, count: p.batch}
		lengths.at = func(k int) int { return share(p.tokens, p.batch, k) + share(p.kv, p.batch, k) }
		return scheduled(p.batch, p.tokens, p.kv, lengths.variance(), 0, 0, 0)
	}
	step := 0
	if samples > 1 {
		step = i - 1
	}
	contexts := spread{total: p.kv + p.batch*step, count: p.batch}
	contexts.at = func(k int) int { return share(p.kv, p.batch, k) + step }
	return scheduled(0, 0, 0, 0, p.batch, contexts.total, contexts.variance())
}

func scheduled(prefills, tokens, prefillKV int, prefillVariance float64, decodes, decodeKV int, decodeVariance float64) pyjson.Object {
	return pyjson.Object{
		{Key: "num_prefill_requests", Value: prefills},
		{Key: "sum_prefill_tokens", Value: tokens},
		{Key: "var_prefill_length", Value: prefillVariance},
		{Key: "sum_prefill_kv_tokens", Value: prefillKV},
		{Key: "num_decode_requests", Value: decodes},
		{Key: "sum_decode_kv_tokens", Value: decodeKV},
		{Key: "var_decode_kv_tokens", Value: decodeVariance},
	}
}

// queued is an empty queue.
func queued() pyjson.Object {
	return pyjson.Object{
		{Key: "num_prefill_requests", Value: 0},
		{Key: "sum_prefill_tokens", Value: 0},
		{Key: "var_prefill_length", Value: 0.0},
		{Key: "num_decode_requests", Value: 0},
		{Key: "sum_decode_kv_tokens", Value: 0},
		{Key: "var_decode_kv_tokens", Value: 0.0},
	}
}

// spread is a number of token counts with a known sum.
type spread struct {
	total, count int
	at           func(int) int
}

// variance is the population variance. The conversion keeps the product apart from the
// sum, as in [dice.between].
func (s spread) variance() float64 {
	mean := float64(s.total) / float64(s.count)
	sum := 0.0
	for i := range s.count {
		d := float64(s.at(i)) - mean
		sum += float64(d * d)
	}
	return sum / float64(s.count)
}
