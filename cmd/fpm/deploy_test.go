package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/fpm-project/fpm/trace/record"
)

const deployed = "../../deploy"

func readDeployed(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployed, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// checkCommandLine has the program judge the options of a command line, all but what they
// would do.
func checkCommandLine(args []string, vars map[string]string) error {
	a := newApp(io.Discard, io.Discard, environment(vars))
	cmd, rest, err := newRoot(a).Find(args)
	if err != nil {
		return err
	}
	if cmd.HasSubCommands() {
		return fmt.Errorf("%q is a group of commands", args)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err
	}
	if commandName(cmd) != "trace record" {
		return nil
	}
	policy, err := a.policy(cmd)
	if err != nil {
		return err
	}
	text := func(flag string) string { return cmd.Flag(flag).Value.String() }
	flags := recordFlags{host: text("host"), ranks: text("ranks"), namespace: text("namespace"), component: text("component"), metricsListen: text("metrics-listen")}
	if endpoints, faults := flags.check(cmd, policy); len(faults) > 0 || len(endpoints) == 0 {
		return fmt.Errorf("%d endpoints, %q", len(endpoints), faults)
	}
	return nil
}

// TestCheckCommandLine shows that a command line can fail the check.
func TestCheckCommandLine(t *testing.T) {
	for _, line := range []string{
		"nothing", "trace", "trace nothing", "trace record --no-such-flag", "trace record extra", "trace record --max-segments none",
		"trace record --ranks 7-0", "trace record --metrics-listen 9477", "trace ports --dp-size many",
	} {
		if checkCommandLine(strings.Fields(line), nil) == nil {
			t.Errorf("%q has nothing wrong with it", line)
		}
	}
	if checkCommandLine([]string{"trace", "record"}, map[string]string{"DYN_FPM_MODE": "fast"}) == nil {
		t.Error("a variable has nothing wrong with it")
	}
}

// container is what matters here of one in a pod.
type container struct {
	Name          string
	Image         string
	RestartPolicy string `yaml:"restartPolicy"`
	Args          []string
	Env           []struct{ Name, Value string }
	Ports         []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	LivenessProbe struct {
		HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
	} `yaml:"livenessProbe"`
	VolumeMounts []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

// object is what matters here of one of Kubernetes.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		InitContainers []container `yaml:"initContainers"`
		Containers     []container
		Volumes        []struct{ Name string }
		Selector       struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		PodMetricsEndpoints []struct{ Port, Path string } `yaml:"podMetricsEndpoints"`
	}
}

func TestSidecar(t *testing.T) {
	var objects []object
	for d := yaml.NewDecoder(bytes.NewReader(readDeployed(t, "kubernetes/sidecar.yaml"))); ; {
		var o object
		if err := d.Decode(&o); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if o.APIVersion == "" || o.Kind == "" || o.Metadata.Name == "" {
			t.Errorf("no object: %+v", o)
		}
		objects = append(objects, o)
	}
	if len(objects) != 2 || objects[0].Kind != "Pod" || objects[1].Kind != "PodMonitor" {
		t.Fatalf("%d objects", len(objects))
	}
	pod, monitor := objects[0], objects[1]
	sidecar, worker := pod.Spec.InitContainers[0], pod.Spec.Containers[0]
	vars := map[string]string{}
	for _, e := range sidecar.Env {
		vars[e.Name] = e.Value
	}
	if err := checkCommandLine(sidecar.Args, vars); err != nil {
		t.Error(err)
	}
	if sidecar.RestartPolicy != "Always" {
		t.Error("the recorder is no sidecar: the worker would wait for its end")
	}
	for _, e := range worker.Env {
		if vars[e.Name] != e.Value {
			t.Errorf("the worker's %s is %q, the recorder's %q", e.Name, e.Value, vars[e.Name])
		}
	}
	port := sidecar.Ports[0]
	if !slices.Contains(sidecar.Args, "--metrics-listen=0.0.0.0:9477") || port.ContainerPort != 9477 || sidecar.LivenessProbe.HTTPGet.Port != port.Name ||
		monitor.Spec.PodMetricsEndpoints[0].Port != port.Name || monitor.Spec.PodMetricsEndpoints[0].Path != "/metrics" {
		t.Errorf("the ports of the metrics differ: %+v, %+v", port, monitor.Spec)
	}
	for key, value := range monitor.Spec.Selector.MatchLabels {
		if pod.Metadata.Labels[key] != value {
			t.Errorf("the monitor looks for %s: %s", key, value)
		}
	}
	mount := sidecar.VolumeMounts[0]
	if mount.Name != pod.Spec.Volumes[0].Name || !slices.ContainsFunc(sidecar.Args, func(arg string) bool { return strings.HasPrefix(arg, "--output="+mount.MountPath+"/") }) {
		t.Errorf("what is written is not in the volume: %+v", mount)
	}
	if path := sidecar.LivenessProbe.HTTPGet.Path; path != "/healthz" {
		t.Errorf("alive is what %s says", path)
	}
}

// setting is a line NAME=VALUE of a unit or an environment file.
type setting struct{ section, name, value string }

// settings reads a file of sections and settings, as those of systemd.
func settings(t *testing.T, text string) (list []setting) {
	t.Helper()
	section := ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if name, ok := strings.CutPrefix(line, "["); ok && strings.HasSuffix(name, "]") {
			section = strings.TrimSuffix(name, "]")
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" {
			t.Fatalf("line %d: %q", i+1, line)
		}
		list = append(list, setting{section, name, value})
	}
	return list
}

func TestService(t *testing.T) {
	unit := settings(t, string(readDeployed(t, "systemd/fpm-trace.service")))
	vars := map[string]string{"STATE_DIRECTORY": "/var/lib/fpm"}
	for _, s := range settings(t, string(readDeployed(t, "systemd/fpm-trace.env"))) {
		vars[s.name] = s.value
	}
	found := map[string]string{}
	for _, s := range unit {
		if !slices.Contains([]string{"Unit", "Service", "Install"}, s.section) {
			t.Errorf("%s is in the section %q", s.name, s.section)
		}
		if _, twice := found[s.name]; twice {
			t.Errorf("%s is there twice", s.name)
		}
		found[s.name] = s.value
	}
	line, _ := strings.CutPrefix(found["ExecStart"], "/usr/local/bin/fpm ")
	line = os.Expand(line, func(name string) string {
		if vars[name] == "" {
			t.Errorf("ExecStart has $%s, which nothing sets", name)
		}
		return vars[name]
	})
	if err := checkCommandLine(strings.Fields(line), vars); err != nil {
		t.Errorf("ExecStart: %v", err)
	}
	if d, err := time.ParseDuration(found["TimeoutStopSec"]); err != nil || d < 6*time.Second {
		t.Errorf("the recorder has %q to stop in, and takes up to five seconds", found["TimeoutStopSec"])
	}
	if sidecar := string(readDeployed(t, "kubernetes/sidecar.yaml")); !strings.Contains(sidecar, "- --mode="+vars["DYN_FPM_MODE"]+"\n") {
		t.Errorf("the examples record in different modes, here %s", vars["DYN_FPM_MODE"])
	}
	if d, err := time.ParseDuration(found["RestartSec"]); err != nil || d < 10*time.Second || found["SuccessExitStatus"] != "1" {
		t.Errorf("it is restarted after %q, with success %q", found["RestartSec"], found["SuccessExitStatus"])
	}
	if found["KillSignal"] != "SIGTERM" || found["RestartPreventExitStatus"] != "2" || found["EnvironmentFile"] != "/etc/fpm/trace.env" {
		t.Errorf("%+v", found)
	}
}

// TestServiceIsVerified has systemd judge the unit, where it is installed.
func TestServiceIsVerified(t *testing.T) {
	verifier, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("needs systemd-analyze")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(readDeployed(t, "systemd/fpm-trace.service")), "/usr/local/bin/fpm", program)
	text = strings.ReplaceAll(text, "Documentation=man:fpm-trace-record(1)\n", "") // is not installed here
	unit := filepath.Join(t.TempDir(), "fpm-trace.service")
	if err := os.WriteFile(unit, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), verifier, "verify", "--recursive-errors=no", unit).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("fpm-trace.service")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// metricsIn returns the recorder's metrics in an expression of PromQL. The error says that
// it is not balanced or has others.
func metricsIn(expr string) (list []string, err error) {
	for _, pair := range []string{"()", "{}", "[]"} {
		if strings.Count(expr, pair[:1]) != strings.Count(expr, pair[1:]) {
			return nil, fmt.Errorf("not balanced: %s", expr)
		}
	}
	for _, name := range regexp.MustCompile(`\bfpm_[a-z0-9_]+`).FindAllString(expr, -1) {
		if base := strings.TrimSuffix(name, "_bucket"); strings.HasSuffix(base, "_duration_seconds") {
			name = base // a histogram
		}
		if !slices.Contains(record.MetricNames(), name) {
			return nil, fmt.Errorf("there is no metric %s", name)
		}
		list = append(list, name)
	}
	if len(list) == 0 && !strings.HasPrefix(expr, "up{") {
		return nil, fmt.Errorf("no metric in %s", expr)
	}
	return list, nil
}

// TestMetricsIn shows that an expression can fail the check above.
func TestMetricsIn(t *testing.T) {
	if list, err := metricsIn(`histogram_quantile(0.5, rate(fpm_trace_flush_duration_seconds_bucket[5m]))`); err != nil || !slices.Equal(list, []string{"fpm_trace_flush_duration_seconds"}) {
		t.Errorf("%v, %v", list, err)
	}
	for _, expr := range []string{"sum(fpm_trace_received_total", "fpm_trace_nothing", "fpm_trace_received_total_bucket", "1"} {
		if _, err := metricsIn(expr); err == nil {
			t.Errorf("%s has nothing wrong with it", expr)
		}
	}
}

// braces finds what a template refers to.
var braces = regexp.MustCompile(`\{\{ *([^}]*?) *\}\}`)

func TestAlerts(t *testing.T) {
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	d := yaml.NewDecoder(bytes.NewReader(readDeployed(t, "prometheus/fpm-trace.rules.yaml")))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) < 8 {
		t.Fatalf("%d groups", len(file.Groups))
	}
	names := map[string]bool{}
	for _, r := range file.Groups[0].Rules {
		if r.Alert == "" || names[r.Alert] {
			t.Errorf("the name %q", r.Alert)
		}
		names[r.Alert] = true
		if _, err := metricsIn(r.Expr); err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		if r.For != "" {
			if _, err := time.ParseDuration(r.For); err != nil {
				t.Errorf("%s: for: %v", r.Alert, err)
			}
		}
		if s := r.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
		text := r.Annotations["summary"] + r.Annotations["description"]
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: says nothing", r.Alert)
		}
		for _, ref := range braces.FindAllStringSubmatch(text, -1) {
			if label, ok := strings.CutPrefix(ref[1], "$labels."); ok && !slices.Contains([]string{"instance", "endpoint", "reason", "place"}, label) || !ok && !strings.HasPrefix(ref[1], "$value") {
				t.Errorf("%s: refers to %s", r.Alert, ref[1])
			}
		}
	}
}

func TestDashboard(t *testing.T) {
	var board struct {
		UID, Title    string
		SchemaVersion int
		Templating    struct{ List []struct{ Name string } }
		Panels        []struct {
			ID                       int
			Type, Title, Description string
			GridPos                  struct{ X, Y, W, H int }
			Targets                  []struct{ RefID, Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(readDeployed(t, "grafana/fpm-trace.json"), &board); err != nil {
		t.Fatal(err)
	}
	if board.UID == "" || board.Title == "" || board.SchemaVersion == 0 || len(board.Panels) < 10 {
		t.Fatalf("%+v", board)
	}
	variables := []string{"__rate_interval", "__all"}
	for _, v := range board.Templating.List {
		variables = append(variables, v.Name)
	}
	used, cells, ids := map[string]bool{}, map[[2]int]string{}, map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %+v", p)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s is on top of %s, or outside", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			metrics, err := metricsIn(target.Expr)
			if err != nil {
				t.Errorf("%s: %v", p.Title, err)
			}
			for _, name := range metrics {
				used[name] = true
			}
			for _, ref := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				if !slices.Contains(variables, ref[1]) {
					t.Errorf("%s: there is no variable %s", p.Title, ref[1])
				}
			}
		}
	}
	for _, name := range record.MetricNames() {
		if !used[name] && name != "fpm_build_info" {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// The job that the alerts name is the one that scrapes, at the address of the service.
func TestScrape(t *testing.T) {
	var file struct {
		ScrapeConfigs []struct {
			JobName        string                       `yaml:"job_name"`
			ScrapeInterval string                       `yaml:"scrape_interval"`
			StaticConfigs  []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	d := yaml.NewDecoder(bytes.NewReader(readDeployed(t, "prometheus/scrape.yaml")))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	job := file.ScrapeConfigs[0]
	for _, name := range []string{"prometheus/fpm-trace.rules.yaml", "kubernetes/sidecar.yaml"} {
		if text := string(readDeployed(t, name)); !strings.Contains(text, `job="`+job.JobName+`"`) && !strings.Contains(text, "replacement: "+job.JobName+" ") {
			t.Errorf("%s knows no job %s", name, job.JobName)
		}
	}
	target := job.StaticConfigs[0].Targets[0]
	if !strings.Contains(string(readDeployed(t, "systemd/fpm-trace.service")), "--metrics-listen "+target+" ") {
		t.Errorf("nothing listens at %s", target)
	}
}

// TestCommandsInText checks the command lines in the texts of deploy.
func TestCommandsInText(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(deployed, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range regexp.MustCompile("[`']fpm ([a-z][^`'\n]*)[`']").FindAllStringSubmatch(string(text), -1) {
			line := regexp.MustCompile(` --metrics-listen$`).ReplaceAllString(m[1], " --metrics-listen=127.0.0.1:9477")
			if err := checkCommandLine(strings.Fields(line), nil); err != nil {
				t.Errorf("%s: %s: %v", path, line, err)
			}
			seen++
		}
		return nil
	})
	if err != nil || seen < 3 {
		t.Errorf("%d command lines, %v", seen, err)
	}
}
