package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

const servePage = "../../docs/serve.md"

// TestServePage runs the session of docs/serve.md with curl, in one shell. With -update it
// writes what is printed there.
func TestServePage(t *testing.T) {
	for _, tool := range []string{"sh", "curl", "mkfifo", "gzip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the session needs %s, which is not installed", tool)
		}
	}
	text, err := os.ReadFile(servePage)
	if err != nil {
		t.Fatal(err)
	}
	const open, end = "```console\n", "```\n"
	var session strings.Builder
	between(t, string(text), open, end, func(part string) string {
		session.WriteString(part + "$ : next part\n")
		return part
	})
	printed := strings.Split(settled(replay(t, session.String())), "$ : next part\n")
	want := between(t, string(text), open, end, func(string) string {
		part := printed[0]
		printed = printed[1:]
		return part
	})
	if *update {
		if err := os.WriteFile(servePage, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("docs/serve.md is not what the program says: run scripts/gendocs (-program +page):\n%s", diff)
	}
}

// settled puts one text in the place of each that is another every time.
func settled(output string) string {
	for _, r := range []struct{ pattern, text string }{
		{`\r\n`, "\n"},
		{`127\.0\.0\.1:[0-9]+`, "127.0.0.1:41234"},
		{`(?m)^Date: .*$`, "Date: Mon, 01 Jun 2026 12:00:00 GMT"},
	} {
		output = regexp.MustCompile(r.pattern).ReplaceAllString(output, r.text)
	}
	return output
}

// serving is a server process.
type serving struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr *bytes.Buffer
	url    string
}

func startServe(t *testing.T, args ...string) *serving {
	t.Helper()
	s := &serving{t: t, cmd: exec.Command("fpm", append([]string{"serve"}, args...)...), stderr: &bytes.Buffer{}}
	s.cmd.Stderr = s.stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdout = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill() })
	line, err := s.stdout.ReadString('\n')
	if err != nil {
		s.cmd.Wait()
		t.Fatalf("no address: %v\n%s", err, s.stderr)
	}
	s.url = strings.TrimPrefix(strings.TrimSpace(line), "listening on ")
	return s
}

func (s *serving) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// end waits for the process and returns the rest of its output and its exit status.
func (s *serving) end() (rest string, status int) {
	s.t.Helper()
	text, err := io.ReadAll(s.stdout)
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd.Wait() // its error is the exit status
	return string(text), s.cmd.ProcessState.ExitCode()
}

// stuck begins a document and reads none of it. It returns when the answer has begun.
func (s *serving) stuck() net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	io.WriteString(conn, "GET /get_perf_metrics HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// closed waits until no connection is accepted any more.
func (s *serving) closed() {
	for {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			return
		}
		conn.Close()
	}
}

// large writes a document that no socket buffers hold.
func large(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "large_merged.json")
	text := `{"run_id": "r", "x": [` + strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("x", 1<<20)+`",`, 32), ",") + "]}"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestServeStops(t *testing.T) {
	path := large(t)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		s := startServe(t, path)
		resp, err := http.Get(s.url + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		s.signal(sig)
		if rest, status := s.end(); rest != "stopped\n" || status != 0 {
			t.Errorf("%v: exit status %d, %q", sig, status, rest)
		}
		if !strings.Contains(s.stderr.String(), "fpm serve: serving ") || strings.Contains(s.stderr.String(), "warning") {
			t.Errorf("%v: standard error %s", sig, s.stderr)
		}
	}

	s := startServe(t, path, "--drain", "10ms")
	s.stuck()
	s.signal(syscall.SIGTERM)
	if _, status := s.end(); status != 0 || !strings.Contains(s.stderr.String(), "cut off") {
		t.Errorf("after --drain: exit status %d, %s", status, s.stderr)
	}

	s = startServe(t, path, "--drain", "1h", "--stall", "1h")
	s.stuck()
	s.signal(syscall.SIGTERM)
	s.closed()
	s.signal(syscall.SIGINT) // not an echo of the first
	if _, status := s.end(); status != 130 {
		t.Errorf("after a second signal: exit status %d", status)
	}
}

// The sidecar of a compressed file has no suffix of compression. It is noticed when it
// comes and when it is replaced.
func TestServeNoticesTheSidecarOfACompressedFile(t *testing.T) {
	const text = `{"artifact_type": "merged", "run_id": "r", "dp": {"ranks": [0], "source_ranks": [0]}, "engine": {}}`
	for suffix, compressor := range map[string]func(io.Writer) (io.WriteCloser, error){
		"":     func(w io.Writer) (io.WriteCloser, error) { return nopCloser{w}, nil },
		".gz":  func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		".zst": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	} {
		t.Run("suffix"+suffix, func(t *testing.T) {
			var packed bytes.Buffer
			w, err := compressor(&packed)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.WriteString(w, text)
			path := filepath.Join(t.TempDir(), "merged.json"+suffix)
			if err := errors.Join(err, w.Close(), os.WriteFile(path, packed.Bytes(), 0o666)); err != nil {
				t.Fatal(err)
			}
			s := startServe(t, path)
			if got := s.get("/get_perf_metrics"); got != text {
				t.Errorf("served %s", got)
			}
			for _, reason := range []string{"the first", "the second"} {
				if out, err := exec.Command("fpm", "probe-report", path, "--skipped", reason).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if got := s.get("/get_perf_metrics"); !strings.Contains(got, "probe_skipped: "+reason) {
					t.Errorf("%s sidecar was not noticed: %s", reason, got)
				}
			}
		})
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// get returns the body of an answer.
func (s *serving) get(path string) string {
	s.t.Helper()
	resp, err := http.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

func TestServeCutsOffWhoStandsStill(t *testing.T) {
	s := startServe(t, large(t), "--stall", "50ms", "--max-answers", "1")
	conn := s.stuck()
	// The server has to give up before a next client is answered.
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableCompression: true}}
	for {
		resp, err := client.Get(s.url + "/get_perf_metrics")
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			if err != nil || n != resp.ContentLength {
				t.Errorf("%d of %d bytes: %v", n, resp.ContentLength, err)
			}
			break
		}
	}
	if n, err := io.Copy(io.Discard, conn); err == nil && n > 32<<20 {
		t.Errorf("the first client got %d bytes", n)
	}
}

func TestServeWarnsOfOtherInterfaces(t *testing.T) {
	path := large(t)
	s := startServe(t, path, "--listen", "0.0.0.0:0")
	s.signal(syscall.SIGTERM)
	s.end()
	if !strings.Contains(s.url, "0.0.0.0:") {
		t.Errorf("asked for every IPv4 interface, and listening on %s", s.url)
	}
	if want := "fpm: warning: this address is not a loopback one, and there is no authentication"; !strings.Contains(s.stderr.String(), want) {
		t.Errorf("standard error %s", s.stderr)
	}
}

// With a machine format standard output is one document.
func TestServeFormat(t *testing.T) {
	cmd := exec.Command("fpm", "serve", "--format", "json", large(t))
	var out bytes.Buffer
	cmd.Stdout = &out
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "listening on ") {
	}
	cmd.Process.Signal(syscall.SIGTERM)
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil || !regexp.MustCompile(`(?s)^\{.*"status": "ok".*"address": "127\.0\.0\.1:\d+".*\}\n$`).MatchString(out.String()) {
		t.Errorf("%v: %s", err, out.String())
	}
}
