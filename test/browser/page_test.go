// Package browser opens the page that kubectl windows gather writes in a real browser, headless Chromium.
package browser

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/fleet"
	"github.com/windows-machine-config/wmco/internal/gather/page"
)

// browserTimeout is the maximum time for the browser.
const browserTimeout = 2 * time.Minute

// probe is a page that embeds the tested page in a frame and reports how the browser has rendered it.
//
//go:embed probe.html
var probe []byte

// seen is the report of the probe.
type seen struct {
	Dead        []string `json:"dead"`        // names in the first list
	DeadAt      float64  `json:"deadAt"`      // bottom of that list
	Overflow    float64  `json:"overflow"`    // width of the page beyond the window
	Rows        int      `json:"rows"`        // rows of the table
	Drawn       int      `json:"drawn"`       // visible timelines
	Bars        int      `json:"bars"`        // bars in the timelines
	OutOfSight  []string `json:"outOfSight"`  // texts cut off by a drawing
	Overlapping []string `json:"overlapping"` // axis texts that overlap
	TooLong     []string `json:"tooLong"`     // texts that do not fit into their bars
	Ran         bool     `json:"ran"`         // whether a script in the page has run
}

// findChromium returns the path of the browser.
func findChromium(t *testing.T) string {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), "../../hack/make-chromium").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the page of kubectl windows gather was opened in no browser: %s", bytes.TrimSpace(output))
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// openPage opens a page in the browser, and returns the report and the requested files.
func openPage(t *testing.T, content []byte) (seen, []string) {
	t.Helper()
	browser := findChromium(t)
	var mu sync.Mutex
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, r.URL.Path)
		switch r.URL.Path {
		case "/index.html":
			_, _ = w.Write(content)
		case "/probe.html":
			_, _ = w.Write(probe)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), browserTimeout)
	defer cancel()
	// There is no sandbox for root, and containers have little shared memory.
	command := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--window-size=1200,1000", "--user-data-dir="+t.TempDir(), "--dump-dom", server.URL+"/probe.html")
	var messages bytes.Buffer
	command.Stderr = &messages
	dumped, err := command.Output()
	if err != nil {
		t.Fatalf("chromium: %v\n%s", err, messages.Bytes())
	}
	_, after, _ := strings.Cut(string(dumped), `<pre id="result">`)
	result, _, _ := strings.Cut(after, "</pre>")
	var s seen
	if err := json.Unmarshal([]byte(html.UnescapeString(result)), &s); err != nil {
		t.Fatalf("the probe wrote %q: %v\n%s", result, err, messages.Bytes())
	}
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(requests)
	return s, slices.Compact(requests)
}

const hostile = `<script>parent.ran = window.ran = true</script><img src="/stolen.png" onerror="parent.ran = window.ran = true">`

var now = time.Date(2026, 3, 1, 14, 30, 0, 0, time.UTC)

// newLargeFleet returns a fleet of 50 hosts of all ages. Every tenth host is dead.
func newLargeFleet() page.Input {
	in := page.Input{Now: now}
	for n := range 50 {
		name := fmt.Sprintf("winworker-%02d", n)
		created := metav1.NewTime(now.Add(-time.Duration(n*n*n+1) * time.Minute))
		i := fleet.Instance{WindowsInstance: v1alpha1.WindowsInstance{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: created},
			Spec:       v1alpha1.WindowsInstanceSpec{Address: fmt.Sprintf("10.1.2.%d", n), Source: v1alpha1.Source{ConfigMapKey: name}},
			Status: v1alpha1.WindowsInstanceStatus{Summary: "Ready", Version: "12.0.0",
				NodeRef: &v1alpha1.NodeReference{Name: name}},
		}}
		for step, kind := range []string{v1alpha1.ConditionReachable, v1alpha1.ConditionSupported, v1alpha1.ConditionPrepared,
			v1alpha1.ConditionInstalled, v1alpha1.ConditionJoined, v1alpha1.ConditionNetworkReady, v1alpha1.ConditionReady,
			v1alpha1.ConditionUpToDate} {
			c := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded,
				LastTransitionTime: metav1.NewTime(created.Add(time.Duration(step) * time.Minute))}
			if n%10 == 3 && (kind == v1alpha1.ConditionReachable || kind == v1alpha1.ConditionReady) {
				c.Status, c.Reason, c.Message = metav1.ConditionFalse, "ConnectionTimedOut", "No answer. "+hostile
				c.LastTransitionTime = metav1.NewTime(now.Add(-time.Duration(n) * time.Minute))
				i.Status.Summary, i.Status.NextAction = c.Reason, "The operator retries. "+hostile
			}
			i.Status.Conditions = append(i.Status.Conditions, c)
		}
		in.Fleet.Instances = append(in.Fleet.Instances, i)
		in.Hosts = append(in.Hosts, page.Host{Instance: i, Events: []corev1.Event{{Type: corev1.EventTypeWarning, Reason: "Failed",
			Message: hostile + strings.Repeat("long", 300), LastTimestamp: metav1.NewTime(now.Add(-time.Minute))}}})
	}
	return in
}

func TestPage_ShowsFleetInBrowser(t *testing.T) {
	var content bytes.Buffer
	if err := page.Write(&content, newLargeFleet()); err != nil {
		t.Fatal(err)
	}
	s, requests := openPage(t, content.Bytes())
	t.Run("it names the dead hosts on the first screen", func(t *testing.T) {
		want := []string{"winworker-03", "winworker-13", "winworker-23", "winworker-33", "winworker-43"}
		if !slices.Equal(s.Dead, want) || s.DeadAt > 900 {
			t.Errorf("it names %v, down to %.0f", s.Dead, s.DeadAt)
		}
	})
	t.Run("it draws the timeline of each host that is not well", func(t *testing.T) {
		if s.Rows != 50 || s.Drawn != 5 || s.Bars != 5*8 {
			t.Errorf("%d rows, %d drawings, %d bars", s.Rows, s.Drawn, s.Bars)
		}
	})
	t.Run("every text can be read, also of the hosts that are folded away", func(t *testing.T) {
		if s.Overflow > 0 || len(s.OutOfSight)+len(s.Overlapping)+len(s.TooLong) > 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("it asks for nothing else, and nothing in it runs", func(t *testing.T) {
		if want := []string{"/index.html", "/probe.html"}; s.Ran || !slices.Equal(slices.DeleteFunc(requests, func(path string) bool {
			return path == "/favicon.ico" // requested by the probe
		}), want) {
			t.Errorf("it asked for %v; a script ran: %t", requests, s.Ran)
		}
	})
}
