package nodespec

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestLogSettings(t *testing.T) {
	t.Run("kube-log-runner appends and flushes, and never renames a log that Windows may refuse to rename", func(t *testing.T) {
		settings, err := ParseLogSettings("100Mi", "168h", "5s")
		if err != nil {
			t.Fatal(err)
		}
		in := azureInputs()
		in.LogSettings = settings
		for _, service := range mustMake(t, in).Services {
			words := host.SplitCommandLine(service.CommandLine)
			if !strings.HasSuffix(words[0], "kube-log-runner.exe") {
				continue
			}
			program := slices.IndexFunc(words[1:], func(word string) bool { return !strings.HasPrefix(word, "-") }) + 1
			if want := []string{"-log-file=" + LogPath(service.Name), "-flush-interval=5s"}; !slices.Equal(words[1:program], want) {
				t.Errorf("the flags of kube-log-runner for %s are %q", service.Name, words[1:program])
			}
		}
	})
	t.Run("an environment that says nothing rotates as on a usual node", func(t *testing.T) {
		settings, err := ParseLogSettings("", "", "")
		if want := (LogSettings{FileSize: "100Mi", FileAge: 168 * time.Hour}); err != nil || settings != want {
			t.Errorf("got %+v, error %v", settings, err)
		}
	})
	for _, zero := range []string{"0", "0Mi"} {
		t.Run("a size of "+zero+" turns rotation off everywhere", func(t *testing.T) {
			settings, err := ParseLogSettings(zero, "0s", "0s")
			if err != nil || settings != (LogSettings{}) || settings.FlushInterval != 0 {
				t.Errorf("got %+v, error %v", settings, err)
			}
			in := testInputs()
			in.LogSettings = settings
			if spec := mustMake(t, in); len(spec.Logs) != 0 {
				t.Errorf("the agent rotates %v", spec.Logs)
			}
		})
	}
	t.Run("the size is the same to every program that rotates", func(t *testing.T) {
		for size, want := range map[string]struct {
			bytes int64
			flag  string
		}{"100Mi": {100 << 20, "100"}, "1G": {1e9, "953"}, "10k": {1e4, "1"}, "2Gi": {2 << 30, "2048"}, "0": {0, "1048576"}} {
			settings, err := ParseLogSettings(size, "25h", "")
			wantFlags := []string{"--logfile-maxsize=" + want.flag, "--logfile-maxage=2", "--logfile-maxbackups=0"}
			if got := settings.lumberjackArguments(); err != nil || settings.fileSizeBytes() != want.bytes || !slices.Equal(got, wantFlags) {
				t.Errorf("%s is %d bytes and %q, error %v", size, settings.fileSizeBytes(), got, err)
			}
		}
	})
	t.Run("the agent rotates the logs of all services but hybrid-overlay-node's and its own", func(t *testing.T) {
		var want []Log
		for _, service := range []string{"containerd", "kubelet", "kube-proxy", "windows_exporter", "csi-proxy", "cloud-node-manager"} {
			path := `C:\var\log\` + service + `\` + service + ".log"
			want = append(want, Log{Path: path, MaxBytes: 100 << 20, MaxAge: 168 * time.Hour})
		}
		got := mustMake(t, azureInputs()).Logs
		byPath := func(a, b Log) int { return strings.Compare(a.Path, b.Path) }
		slices.SortFunc(want, byPath)
		slices.SortFunc(got, byPath)
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
	faults := map[string]struct{ size, age, flush, want string }{
		"a size that is no number":       {"big", "", "", "SERVICES_LOG_FILE_SIZE"},
		"a size below zero":              {"-1", "", "", "SERVICES_LOG_FILE_SIZE"},
		"a size beyond any disk":         {"999999999999999Ti", "", "", "SERVICES_LOG_FILE_SIZE"},
		"a size that is two words":       {"1 -x", "", "", "SERVICES_LOG_FILE_SIZE"},
		"a size that Kubernetes refuses": {"100K", "", "", "SERVICES_LOG_FILE_SIZE"},
		"an age without a unit":          {"", "7", "", "SERVICES_LOG_FILE_AGE"},
		"an age below zero":              {"", "-1h", "", "SERVICES_LOG_FILE_AGE"},
		"an invalid interval":            {"", "", "soon", "SERVICES_LOG_FLUSH_INTERVAL"},
	}
	for name, test := range faults {
		t.Run(name+" is refused", func(t *testing.T) {
			if _, err := ParseLogSettings(test.size, test.age, test.flush); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v", err)
			}
		})
	}
	t.Run("every size that is accepted is a quantity", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			size := rapid.StringMatching(`[0-9]{1,16}(|[a-zA-Z]i?)`).Draw(r, "size")
			if settings, err := ParseLogSettings(size, "", ""); err == nil {
				quantity, err := resource.ParseQuantity(size)
				if err != nil || quantity.Value() != settings.fileSizeBytes() {
					r.Fatalf("%s: %v, %d bytes", size, err, settings.fileSizeBytes())
				}
			}
		})
	})
}
