package finding

// ID is the stable name of a rule. It is printed, carried by every machine format and
// asserted by tests; it never changes its meaning.
type ID string

// Level tells which verdict a rule belongs to.
type Level string

// The levels.
const (
	Merge  Level = "merge"  // what a merge requires
	Strict Level = "strict" // what strict consumers require beyond it
	Trace  Level = "trace"  // live traces
	Probe  Level = "probe"  // the worker probe
)

// Rule is a row of the one rule table, from which the rule list, the documentation and
// the tests are made.
type Rule struct {
	ID       ID
	Severity Severity
	Level    Level
	Purpose  string // the requirement, in one sentence
	Hint     string // what to do when it is broken
	Example  string // a smallest fault that breaks it
}

// Rule ids of the merge level.
const (
	JSONSyntax       ID = "json.syntax"
	JSONNumber       ID = "json.number"
	JSONDuplicateKey ID = "json.duplicate-key"
	JSONDepth        ID = "json.depth"
	InputLimit       ID = "input.limit"
	InputKind        ID = "input.kind"

	RankStatus     ID = "rank.status"
	RankCoverage   ID = "rank.coverage"
	RankCounts     ID = "rank.counts"
	RankComplete   ID = "rank.complete"
	RankPartial    ID = "rank.partial"
	RankPartialRun ID = "rank.partial-run" // warning
	RankSchema     ID = "rank.schema"
	RankDP         ID = "rank.dp"

	RunID         ID = "run.id"
	RunGrid       ID = "run.grid"
	RunStatus     ID = "run.status"
	RunCoverage   ID = "run.coverage"
	RunStopReason ID = "run.stop-reason"

	GroupDiffers    ID = "group.differs"
	GroupEmpty      ID = "group.empty"
	GroupID         ID = "group.id"
	GroupIncomplete ID = "group.incomplete"
	GroupRanks      ID = "group.ranks"
	GroupFPMCount   ID = "group.fpm-count"
	GroupCounter    ID = "group.counter"
	GroupFPMRank    ID = "group.fpm-rank"
	GroupWallTime   ID = "group.wall-time"

	ResultID       ID = "result.id"
	ResultPoint    ID = "result.point"
	ResultFPMCount ID = "result.fpm-count"
	ResultCounter  ID = "result.counter"
	ResultFPMRank  ID = "result.fpm-rank"
	ResultDiffers  ID = "result.differs"

	TimingShape    ID = "timing.shape"
	TimingMeasured ID = "timing.measured"
	TimingExceeds  ID = "timing.exceeds"

	ProtocolMismatch           ID = "protocol.mismatch"
	ProtocolInvalid            ID = "protocol.invalid"
	ProtocolUndeclared         ID = "protocol.undeclared"
	ProtocolContract           ID = "protocol.contract"
	ProtocolContractUndeclared ID = "protocol.contract-undeclared"
	MeasurementMissing         ID = "measurement.missing"
	MeasurementIdentity        ID = "measurement.identity"

	SampleCount     ID = "sample.count"
	SampleIdentity  ID = "sample.identity"
	SampleIndex     ID = "sample.index"
	SampleTiming    ID = "sample.timing"
	SampleCUDAGraph ID = "sample.cudagraph"
	SampleReduction ID = "sample.reduction"
	SampleEstimate  ID = "sample.estimate"

	WarmupLedger    ID = "warmup.ledger"
	WarmupRecord    ID = "warmup.record"
	WarmupRange     ID = "warmup.range"
	WarmupCount     ID = "warmup.count"
	WarmupReference ID = "warmup.reference"
	WarmupOverlap   ID = "warmup.overlap"

	EngineMismatch   ID = "engine.mismatch"
	EngineUnverified ID = "engine.unverified" // warning

	MergedSchema   ID = "merged.schema"
	MergedDP       ID = "merged.dp"
	MergedIdentity ID = "merged.identity"
	MergedStatus   ID = "merged.status"
	MergedCoverage ID = "merged.coverage"
	MergedGroups   ID = "merged.groups"
	MergedResults  ID = "merged.results"
	MergedTiming   ID = "merged.timing"
	MergedLedger   ID = "merged.ledger"
	MergedEngine   ID = "merged.engine"
	MergedPaths    ID = "merged.paths"
	MergedDiffers  ID = "merged.differs"
)

// Rule ids of the strict level.
const (
	ProtocolValue     ID = "protocol.value"
	MeasurementStrict ID = "measurement.strict"
	WarmupStrict      ID = "warmup.strict"

	StrictConfig    ID = "strict.config"
	StrictScheduled ID = "strict.scheduled"
	StrictWall      ID = "strict.wall"
	StrictOrder     ID = "strict.order"
	StrictRegime    ID = "strict.regime"

	SchemaViolation ID = "schema.violation" // with --schema only
)

// Rule ids of the probe level.
const (
	ProbeNoEngine       ID = "probe.no-engine"
	ProbeSidecar        ID = "probe.sidecar"
	ProbeSidecarStale   ID = "probe.sidecar-stale"
	ProbeRunID          ID = "probe.run-id"
	ProbeUnobserved     ID = "probe.unobserved"
	ProbeDisagree       ID = "probe.disagree"
	ProbeIncomplete     ID = "probe.incomplete"
	ProbeFailed         ID = "probe.failed"          // warning
	ProbeSkipped        ID = "probe.skipped"         // warning
	ProbeMalformedReply ID = "probe.malformed-reply" // warning
)

// Rule ids of the trace level.
const (
	TraceRow      ID = "trace.row"
	TraceGap      ID = "trace.gap"
	TraceTorn     ID = "trace.torn"
	TraceSegment  ID = "trace.segment"
	TraceProducer ID = "trace.producer"
	TraceRank     ID = "trace.rank"
	TraceEmpty    ID = "trace.empty"
	TraceRestart  ID = "trace.restart"   // warning
	TraceSampled  ID = "trace.sampled"   // warning
	TraceWallTime ID = "trace.wall-time" // warning
	TraceMixed    ID = "trace.mixed"     // warning
	TracePorts    ID = "trace.ports"
)
