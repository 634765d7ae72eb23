package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/payload"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
)

func TestFlags(t *testing.T) {
	agent := filepath.Join(t.TempDir(), "wicd.exe")
	if err := os.WriteFile(agent, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	usual := func() *options {
		return &options{
			hosts: []int{1, 10, 50}, latencies: []time.Duration{0}, idle: time.Second, limit: time.Minute, agent: agent,
			markdown: defaultMarkdown, fleets: []int{100}, fleetIdle: time.Second, fleetLimit: time.Minute,
		}
	}
	t.Run("some parts are measured alone, and leave the report of a whole run alone", func(t *testing.T) {
		o := usual()
		o.only = []string{"fleets"}
		if err := o.complete(func(string) bool { return false }); err != nil {
			t.Fatal(err)
		}
		if !o.measures(PartFleets) || o.measures(PartJoins) || o.markdown != quickMarkdown {
			t.Errorf("%+v", o)
		}
	})
	t.Run("a quick run does less, and leaves the report of a whole one alone", func(t *testing.T) {
		o := usual()
		o.quick = true
		if err := o.complete(func(string) bool { return false }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(o.hosts, []int{1, 10}) || !slices.Equal(o.latencies, []time.Duration{0, distant}) ||
			o.markdown != quickMarkdown {
			t.Errorf("%+v", o)
		}
	})
	t.Run("what is given holds in a quick run too", func(t *testing.T) {
		o := usual()
		o.quick, o.hosts = true, []int{3}
		err := o.complete(func(flag string) bool { return flag == "hosts" || flag == "report" })
		if err != nil || !slices.Equal(o.hosts, []int{3}) || o.markdown != defaultMarkdown {
			t.Errorf("%+v, error %v", o, err)
		}
	})
	t.Run("a payload that was asked for and is not there is refused", func(t *testing.T) {
		for folder, refused := range map[string]bool{filepath.Join(t.TempDir(), "payload"): true, noPayload: false} {
			o := usual()
			o.payload = folder
			if err := o.complete(func(flag string) bool { return flag == "payload" }); (err != nil) != refused {
				t.Errorf("%s: %v", folder, err)
			}
		}
	})
	for name, test := range map[string]struct {
		spoil func(*options)
		want  string
	}{
		"no host at all":            {func(o *options) { o.hosts = []int{1, 0} }, "--hosts=0"},
		"more hosts than fit":       {func(o *options) { o.hosts = []int{251} }, "--hosts=251"},
		"no number of hosts":        {func(o *options) { o.hosts = nil }, "must not be empty"},
		"a round trip into past":    {func(o *options) { o.latencies = []time.Duration{-1} }, "--latencies"},
		"no time to be idle":        {func(o *options) { o.idle = 0 }, "--idle"},
		"an agent that is missing":  {func(o *options) { o.agent += "x" }, "make build"},
		"a part that there is not":  {func(o *options) { o.only = []string{"weather"} }, "--only=weather"},
		"a fleet that is too large": {func(o *options) { o.fleets = []int{100, 1001} }, "--fleets=1001"},
		"no time for a fleet":       {func(o *options) { o.fleetLimit = 0 }, "--fleet-limit"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			o := usual()
			test.spoil(o)
			if err := o.complete(func(string) bool { return false }); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// The operator does without an optional component that is not whole, and so does the measurement.
func TestPayloadWithoutAnOptionalComponent(t *testing.T) {
	dir := t.TempDir()
	files, err := labpayload.Generate(dir, "", version, labpayload.Options{SizePercent: 5})
	if err != nil {
		t.Fatal(err)
	}
	manifest := files.Manifest()
	i := slices.IndexFunc(manifest.Components, func(c payload.Component) bool { return c.Name != payload.ComponentAgent })
	manifest.Components[i].Required = false
	optional := manifest.Components[i]
	data, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range optional.Files {
		for _, suffix := range []string{"", ".zst"} {
			_ = os.Remove(filepath.Join(dir, "store", file.SHA256+suffix))
		}
	}
	if files, err = payload.Load(dir); err != nil {
		t.Fatal(err)
	}
	if _, _, err := sent(files, complete(files)); err != nil {
		t.Error(err)
	}
	if _, _, err := sent(files, []payload.Component{optional}); err == nil {
		t.Errorf("%s was not missing", optional.Name)
	}
}

// The bytes of both ways are known beforehand, but for what SSH adds.
func TestTransfer(t *testing.T) {
	dir := t.TempDir()
	files, err := labpayload.Generate(filepath.Join(dir, "payload"), "", version, labpayload.Options{SizePercent: 5})
	if err != nil {
		t.Fatal(err)
	}
	g := goods{payload: files}
	if g.agent, err = files.Agent(); err != nil {
		t.Fatal(err)
	}
	raw := int64(0)
	for _, component := range files.Components("None") {
		for _, file := range component.Files {
			g.files, raw = append(g.files, file), raw+file.Size
			if component.Name != payload.ComponentAgent {
				g.others = append(g.others, file.SHA256)
			}
		}
	}
	archive, err := files.Archive(g.others)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	got, err := transfer(t.Context(), clock.RealClock{}, 5*time.Millisecond, g)
	if err != nil {
		t.Fatal(err)
	}
	if got.PlainBytes < raw || got.PlainBytes > raw*12/10 {
		t.Errorf("the plain way brought %d bytes for %d", got.PlainBytes, raw)
	}
	if own := g.agent.Size + archive.Size; got.OwnBytes < own || got.OwnBytes > own*12/10 {
		t.Errorf("our way brought %d bytes for %d", got.OwnBytes, own)
	}
	// Each packet of the plain way waits for its answer.
	if least := float64(raw/packet) * 0.005; got.PlainSeconds < least || got.AgentSeconds <= 0 || got.ArchiveSeconds <= 0 {
		t.Errorf("the plain way took %.3f s and cannot have taken less than %.3f s; ours took %.3f s", got.PlainSeconds,
			least, got.OwnSeconds())
	}
}

// One host is measured in earnest: with the control plane and the agent that make builds.
func TestBench(t *testing.T) {
	t.Chdir("../..")
	dir := t.TempDir()
	var output bytes.Buffer
	command := Command()
	command.SetOut(&output)
	command.SilenceErrors, command.SilenceUsage = true, true
	jsonFile, markdown := filepath.Join(dir, "out", "bench.json"), filepath.Join(dir, "benchmarks.md")
	command.SetArgs([]string{"--quick", "--payload=none", "--hosts=1", "--latencies=0", "--idle=1s", "--json=" + jsonFile,
		"--report=" + markdown})
	err := command.ExecuteContext(t.Context())

	data, readErr := os.ReadFile(jsonFile)
	if readErr != nil {
		t.Fatalf("%v; the run: %v\n%s", readErr, err, output.String())
	}
	var result Result
	if err := json.Unmarshal(data, &result); err != nil {
		t.Fatal(err)
	}
	t.Run("the status says whether a budget is passed, and the last line is the summary", func(t *testing.T) {
		last := ""
		for line := range strings.Lines(output.String()) {
			last = strings.TrimSuffix(line, "\n")
		}
		if err != nil {
			last = err.Error()
		}
		if passed := len(Failed(result.Lines)) > 0; passed != (err != nil) || last != Summary(result) {
			t.Errorf("error %v, last line %q, summary %q", err, last, Summary(result))
		}
	})
	t.Run("everything was measured", func(t *testing.T) {
		if len(result.Joins) != 1 || len(result.Quiets) != 4 || len(result.Transfers) != 1 || result.Payload.RawBytes == 0 {
			t.Errorf("%+v", result)
		}
		for _, quiet := range result.Quiets {
			if quiet.Occasion != LeftAlone && quiet.Reconciles == 0 {
				t.Errorf("%s: the operator did not look at the host", quiet.Occasion)
			}
		}
	})
	t.Run("the tables are there", func(t *testing.T) {
		if text, err := os.ReadFile(markdown); err != nil || string(text) != Markdown(result) {
			t.Errorf("error %v:\n%s", err, text)
		}
	})
}
