package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// A boundary is a point between two steps, the same for every host. Its name describes the last step ("on the wire:
// …", "API: …") or the next step ("agent: …").

// changing contains the operations that change a machine. A kill between two other operations has the same effect
// as a kill before the next of these.
var changing = map[string]bool{
	"Files.Write": true, "Files.Remove": true, "Tree.MakeDirectory": true, "Tree.Symlink": true, "Tree.Rename": true,
	"Services.Configure": true, "Services.Start": true, "Services.Stop": true, "Services.Delete": true,
	"Features.Enable": true, "Features.Disable": true, "System.SetHostName": true, "Power.Reboot": true,
	"Environment.Set": true, "Environment.Unset": true, "Firewall.SetRule": true, "Firewall.DeleteRule": true,
	"Networks.CreateEndpoint": true, "Networks.DeleteEndpoint": true, "Networks.DeleteNetwork": true,
	"Processes.Kill": true,
}

var (
	digests      = regexp.MustCompile(`[0-9a-f]{64}|[0-9a-f]{12}\b`)
	varying      = regexp.MustCompile(`\.partial-[0-9a-f]+|lock\.json\.\d+|-client-\d{4}[-0-9.]*\d`)
	certificates = regexp.MustCompile(`(--certificate |--identity-certificate [a-z-]+:)[A-Za-z0-9_-]+`)
	bootIDs      = regexp.MustCompile(`boot:[-0-9a-f]+`)
	specs        = regexp.MustCompile(`spec-([0-9a-f]{12})`)
)

// normalizeText removes the parts of a text that differ between hosts and runs.
func normalizeText(text string) string {
	text = varying.ReplaceAllStringFunc(text, func(found string) string {
		return strings.TrimRight(found, "0123456789abcdef-.") + "…"
	})
	text = bootIDs.ReplaceAllString(text, "boot:…")
	return certificates.ReplaceAllString(digests.ReplaceAllString(text, "…"), "$1…")
}

// restartPrefix returns a prefix with the number of restarts, because the same steps run again after a restart.
func restartPrefix(machine *fake.Machine) string {
	if restarts := machine.Journal().Count(fake.KindReboot); restarts > 0 {
		return fmt.Sprintf("after restart %d, ", restarts)
	}
	return ""
}

// agentBoundary returns the boundary before an operation of an agent command, or "" for any other operation.
func agentBoundary(machine *fake.Machine, o fake.Operation) string {
	if o.Process.Service != "" || !strings.HasSuffix(o.Process.Path, "wicd.exe") || !changing[o.Interface+"."+o.Method] {
		return ""
	}
	return normalizeText(fmt.Sprintf("%sagent: %s, before %s", restartPrefix(machine), o.Process.Args[0], o))
}

// hostWatch follows the actions of the host's SSH server.
type hostWatch struct {
	host *testenv.Host

	mu    sync.Mutex
	seen  int
	specs []string
}

// skipActions skips the actions for previous operators.
func (w *hostWatch) skipActions() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = len(w.host.Machine().Journal().Entries(nil))
}

// newBoundaries returns the boundaries since the last call, from the actions of the SSH server for the operator.
func (w *hostWatch) newBoundaries() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	journal := w.host.Machine().Journal()
	index, before := 0, restartPrefix(w.host.Machine())
	entries := journal.Entries(func(e fake.Entry) bool {
		index++
		return index > w.seen && e.PID == 0
	})
	w.seen = index
	var labels []string
	for _, e := range entries {
		switch e.Kind {
		case fake.KindWrite, fake.KindFile, winhost.KindCommand:
			// Other paths belong to services, as does the certificate that the hybrid overlay keeps.
			if strings.Contains(e.Detail, nodespec.Root) && !strings.Contains(e.Detail, `\ovnkube-client-`) {
				labels = append(labels, before+"on the wire: "+normalizeText(w.numberSpecs(e.Detail)))
			}
		case fake.KindConnection, fake.KindSFTP:
			labels = append(labels, before+"on the wire: "+string(e.Kind))
		case winhost.KindLogin:
			labels = append(labels, before+"on the wire: login")
		}
	}
	for _, upload := range incompleteUploads(w.host.Machine().Drive()) {
		labels = append(labels, before+"on the wire: began "+normalizeText(w.numberSpecs(upload)))
	}
	return labels
}

// incompleteUploads returns the incomplete uploads.
func incompleteUploads(drive *fake.Drive) []string {
	folders, err := drive.ReadDir(nodespec.AgentRoot)
	if err != nil {
		return nil // does not exist
	}
	var paths []string
	for _, dir := range folders {
		files, err := drive.ReadDir(dir.Path)
		if err != nil {
			continue // a file, or deleted
		}
		for _, file := range files {
			if strings.Contains(file.Name, ".partial-") {
				paths = append(paths, file.Path)
			}
		}
	}
	return paths
}

// numberSpecs replaces the names of a host's specs by their sequence numbers.
func (w *hostWatch) numberSpecs(text string) string {
	return specs.ReplaceAllStringFunc(text, func(found string) string {
		if !slices.Contains(w.specs, found) {
			w.specs = append(w.specs, found)
		}
		return fmt.Sprintf("spec-%d", slices.Index(w.specs, found)+1)
	})
}

// apiBoundaries returns the boundaries after a request that changed the API, none for reads, events and mere
// progress.
func apiBoundaries(request *http.Request, gate bool) []string {
	kind := regexp.MustCompile(`/(windowsinstances|nodes|certificatesigningrequests)(/[^/]+)?(/[a-z]+)?$`).FindStringSubmatch(request.URL.Path)
	if gate && request.Method == http.MethodPut && strings.HasSuffix(request.URL.Path,
		"/"+v1alpha1.DisruptionPolicyName+"/status") {
		return []string{"API: the gate's list"}
	}
	if request.Method == http.MethodGet || kind == nil {
		return nil
	}
	what := "API: " + request.Method + " " + kind[1] + kind[3]
	if request.Method != http.MethodPatch {
		return []string{what}
	}
	var labels []string
	for _, part := range patchedParts(request) {
		labels = append(labels, what+" "+part)
	}
	return labels
}

// patchedParts returns the parts of an object that a patch sets, limited to the parts that each configuration must set.
func patchedParts(request *http.Request) []string {
	if request.GetBody == nil {
		return []string{""}
	}
	body, err := request.GetBody()
	if err != nil {
		return nil
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return nil
	}
	var patch struct {
		Metadata struct{ Annotations map[string]any }
		Spec     map[string]any
		Status   struct {
			HostKey, NodeRef, SpecDigest, RequestedReboot, FailedChange any
			Host, Certificates, RestartStartedAt, Version, Conditions   any
			Summary                                                     string
		}
	}
	if json.Unmarshal(data, &patch) != nil {
		return nil
	}
	var parts []string
	add := func(name string, exists bool) {
		if exists {
			parts = append(parts, name)
		}
	}
	add("annotations", len(patch.Metadata.Annotations) > 0)
	for name := range patch.Spec {
		add("spec."+name, true)
	}
	add("status.hostKey", patch.Status.HostKey != nil)
	add("status.nodeRef", patch.Status.NodeRef != nil)
	add("status.specDigest", patch.Status.SpecDigest != nil)
	add("status.failedChange", patch.Status.FailedChange != nil)
	add("status.requestedReboot", patch.Status.RequestedReboot != nil)
	// The results of a job are written with these.
	add("status.host", patch.Status.Host != nil)
	add("status.certificates", patch.Status.Certificates != nil)
	add("status.restartStartedAt", patch.Status.RestartStartedAt != nil)
	add("status.version", patch.Status.Version != nil)
	add("status.conditions", patch.Status.Conditions != nil)
	add("status.summary "+patch.Status.Summary, slices.Contains([]string{"Rebooting", "Ready"}, patch.Status.Summary))
	return parts
}
