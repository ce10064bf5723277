package schemas

import "testing"

const manifestCounts = `"received":395,"written":390,"heartbeats":3,"busy":392,"gaps":5,"missing":7,"duplicates":0,"restarts":1,"thinned":0,"surplus":0,"queue_drops":5,"disk_drops":0`

// A manifest with everything that there can be in one.
const manifest = `{"schema":"fpm.trace.manifest","schema_version":1,"program":"fpm (devel)","state":"stopped","complete":false,"note":"complete means little.",
"started_unix_ms":1796026372452,"updated_unix_ms":1796026376477,"recorded_ms":4025,"previous":{"state":"recording","complete":false,"started_unix_ms":1,"updated_unix_ms":2},
"prefix":"/tmp/run","capture_mode":"sampled","sample_interval_ms":5000,"roll_bytes":60000,"max_segments":4,
"totals":{` + manifestCounts + `,"pending":0,"crowded_out":0,"rejected":2,"bytes":278024,"compressed_bytes":20437,"segments":5,"deleted_segments":1},
"forgotten":{"streams":1,"counts":{` + manifestCounts + `}},
"endpoints":[{"address":"tcp://127.0.0.1:29380","namespace":"dynamo","component":"backend","connected":true,"connects":1,"delivered":true,"received":197,"rejected":{"too-large":2},"crowded_out":0,"silent":"why"}],
"producers":[
{"producer_id":"w7","disabled":"disk full","files":["run.w7.000001.jsonl.gz"],"files_total":1,"streams":[{"dp_rank":0,"worker_id":"w7","endpoint":"tcp://127.0.0.1:29380",` + manifestCounts + `,"pending":0,"rejected":{},"first_counter":6,"last_counter":205,"first_unix_ms":1796026372494,"last_unix_ms":1796026376474}]}
]}`

func TestTraceManifest(t *testing.T) {
	judge(t, "trace-manifest", manifest, []judgement{
		{edit{"/previous", ""}, ""},
		{edit{"/forgotten", ""}, ""},
		{edit{"/sample_interval_ms", ""}, ""},
		{edit{"/producers", "[]"}, ""},
		{edit{"/capture_mode", `"full"`}, ""},
		{edit{"/state", `"abandoned"`}, ""},
		{edit{"/schema", `"fpm.report"`}, "/schema const"},
		{edit{"/schema_version", "2"}, "/schema_version const"},
		{edit{"/state", `"done"`}, "/state enum"},
		{edit{"/complete", "1"}, "/complete type"},
		{edit{"/note", ""}, " required"},
		{edit{"/totals", ""}, " required"},
		{edit{"/totals/written", ""}, "/totals required"},
		{edit{"/totals/rejected", ""}, "/totals required"},
		{edit{"/totals/received", "-1"}, "/totals/received minimum"},
		{edit{"/endpoints/0/rejected/too-large", "0"}, "/endpoints/0/rejected/too-large minimum"},
		{edit{"/producers/0/files", `[7]`}, "/producers/0/files/0 type"},
		{edit{"/producers/0/streams/0/dp_rank", "-1"}, "/producers/0/streams/0/dp_rank minimum"},
		{edit{"/producers/0/streams/0/disk_drops", ""}, "/producers/0/streams/0 required"},
		{edit{"/producers/0/streams/0/last_counter", "1.5"}, "/producers/0/streams/0/last_counter type"},
	})
}
