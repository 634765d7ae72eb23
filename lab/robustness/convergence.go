package robustness

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/secretscan"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// endFaults ends all lasting actions, boots all hosts, and keeps one operator.
func (l *lab) endFaults(ctx context.Context) error {
	if err := l.endDueActions(ctx, func(ending) bool { return true }); err != nil {
		return err
	}
	for _, h := range l.Hosts() {
		if err := h.Machine().Boot(ctx); err != nil {
			return err
		}
	}
	if err := l.reapOperators(); err != nil {
		return err
	}
	if len(l.operators) == 0 {
		return l.startOperator()
	}
	for _, o := range l.operators[1:] {
		o.Kill()
	}
	l.operators = l.operators[:1]
	return nil
}

// recordFaultsEnd records the revision of the last change so far.
func (l *lab) recordFaultsEnd(ctx context.Context) error {
	initial, later, err := l.history.Changes(ctx)
	for _, c := range append(initial[:len(initial):len(initial)], later...) {
		l.faultsEnd = max(l.faultsEnd, c.Revision)
	}
	return err
}

// awaitConvergence waits until the desired state is reached, and performs the documented actions of an administrator.
// It returns the differences at the limit.
func (l *lab) awaitConvergence(ctx context.Context) ([]string, error) {
	left := time.Now() // time since which the operator no longer changes hosts
	for deadline := time.Now().Add(l.options.Timeout); ; {
		missing, retry, err := l.findMissing(ctx)
		if err != nil || len(missing) == 0 {
			return nil, err
		}
		if !retry {
			left = time.Now()
		}
		if time.Now().After(deadline) || time.Since(left) > restoreTimeout {
			return missing, nil
		}
		if err := l.resolveFailures(ctx); err != nil {
			return nil, err
		}
		if err := l.waitPause(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

// restoreTimeout is the maximum time for changes of a host after its instance is deleted, when the operator no longer
// works on the host.
const restoreTimeout = 10 * time.Second

// resolveFailures accepts the current host keys of hosts with new keys, and retries changes that have failed because of
// faults that have ended.
func (l *lab) resolveFailures(ctx context.Context) error {
	for _, host := range l.shape.Hosts {
		instance, err := l.instanceOf(ctx, host)
		if err != nil || instance == nil {
			if err != nil {
				return err
			}
			continue
		}
		record := l.hosts[host]
		if key := record.HostKeys[len(record.HostKeys)-1]; record.newKey && instance.Status.HostKey != nil &&
			instance.Status.HostKey.Fingerprint != key && instance.Annotations[v1alpha1.AnnotationAcceptHostKey] != key {
			if err := l.patchInstance(ctx, host, annotationPatch(v1alpha1.AnnotationAcceptHostKey, key)); err != nil {
				return err
			}
		}
		if instance.Status.FailedChange != nil {
			if err := l.patchInstance(ctx, host, annotationPatch(v1alpha1.AnnotationRetry, "now")); err != nil {
				return err
			}
		}
	}
	return nil
}

// findMissing reads the current state, and compares it with the desired state. retry is true if the API server has
// reached the desired state, and only hosts differ from their original state.
func (l *lab) findMissing(ctx context.Context) (missing []string, retry bool, err error) {
	in := client.InNamespace(l.Namespace())
	var nodes corev1.NodeList
	var instances v1alpha1.WindowsInstanceList
	var requests certificatesv1.CertificateSigningRequestList
	policy := &v1alpha1.WindowsDisruptionPolicy{}
	for _, list := range []client.ObjectList{&nodes, &instances, &requests} {
		var options []client.ListOption
		if list == client.ObjectList(&instances) {
			options = append(options, in)
		}
		if err := l.Client.List(ctx, list, options...); err != nil {
			return nil, false, err
		}
	}
	key := client.ObjectKey{Namespace: l.Namespace(), Name: v1alpha1.DisruptionPolicyName}
	if err := l.Client.Get(ctx, key, policy); err != nil {
		return nil, false, err
	}
	current := CurrentState{Nodes: nodes.Items, Instances: instances.Items, Requests: requests.Items, Policy: *policy}
	if l.shape.Machines > 0 {
		if current.Machines, err = l.Machines(ctx, machineSet); err != nil {
			return nil, false, err
		}
	}
	if missing = Missing(l.desiredState(), current); len(missing) > 0 {
		return missing, false, nil
	}
	for _, h := range l.Hosts() { // last, because it reads a complete drive
		if !l.model.Listed[h.Options.Name] {
			if diff := l.hostDifference(h); diff != "" {
				missing = append(missing, fmt.Sprintf("host %s is not as it was (-before +after):\n%s", h.Options.Name, diff))
			}
		}
	}
	return missing, true, nil
}

// authorizedKeys is the file of authorized keys: new keys are added, and old keys are never removed.
const authorizedKeys = `C:\ProgramData\ssh\administrators_authorized_keys`

// hostDifference compares a host with its state before it was first listed.
func (l *lab) hostDifference(h *testenv.Host) string {
	before, after := l.hosts[h.Options.Name].before, h.Machine().Snapshot()
	if l.model.Rotated {
		before.Files, after.Files = filesWithout(before, authorizedKeys), filesWithout(after, authorizedKeys)
	}
	if l.hosts[h.Options.Name].poweredOff && len(after.Routes) == 0 {
		before.Routes = after.Routes // Windows loses them at a boot
	}
	return cmp.Diff(before, after)
}

func filesWithout(s fake.Snapshot, path string) map[string]fake.FileSnapshot {
	files := map[string]fake.FileSnapshot{}
	for name, file := range s.Files {
		if name != path {
			files[name] = file
		}
	}
	return files
}

// awaitIdle waits for a period without connections to hosts and without requests of the operator to the API
// server. It returns the operator's last actions.
func (l *lab) awaitIdle(ctx context.Context) (noise []string, err error) {
	listener, err := l.MonitorActivity()
	if err != nil {
		return nil, err
	}
	// The silence may begin at any time: each of several consecutive windows could contain a regular attempt, such as
	// the attempts for a host that may never become a node.
	since := time.Now()
	for deadline := since.Add(l.options.Timeout); ; {
		if err := l.waitPause(ctx, l.options.QuietPeriod/8); err != nil {
			return nil, err
		}
		requests, connections, err := listener.NextActivity()
		if err != nil {
			return nil, err
		}
		switch found := formatActivity(requests, connections); {
		case len(found) > 0:
			noise, since = found, time.Now()
		case time.Since(since) >= l.options.QuietPeriod:
			return nil, nil
		}
		if time.Now().After(deadline) {
			return noise, nil
		}
	}
}

func formatActivity(requests []audit.Event, connections int) (noise []string) {
	for _, e := range requests {
		noise = append(noise, e.Verb+" "+e.URI)
	}
	if connections > 0 {
		noise = append(noise, fmt.Sprintf("hosts had %d connections", connections))
	}
	return noise
}

// kubeletPKI is the directory of a kubelet's keys.
const kubeletPKI = `C:\var\lib\kubelet\pki`

// recordKubeletKeys adds the kubelet's keys of a host to the secrets.
func (l *lab) recordKubeletKeys(h *testenv.Host) error {
	drive := h.Machine().Drive()
	entries, err := drive.ReadDir(kubeletPKI)
	if err != nil {
		return nil //nolint:nilerr // It has none yet.
	}
	for _, entry := range entries {
		data, err := drive.ReadFile(entry.Path)
		if err != nil || entry.Directory || !strings.Contains(string(data), "EC PRIVATE KEY") {
			continue // may be deleted meanwhile
		}
		if err := l.secrets.AddPair("a kubelet's key of "+h.Options.Name, data); err != nil {
			return err
		}
	}
	return nil
}

// exposedSecrets returns the secrets that are readable for non-administrators.
func (l *lab) exposedSecrets(ctx context.Context) (exposed []string, err error) {
	for _, h := range l.allHosts() {
		if err := l.recordKubeletKeys(h); err != nil {
			return nil, err
		}
	}
	objects, err := l.secrets.InCluster(ctx, l.Config)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if len(o.Holds) > 0 && (o.Kind != "Secret" || o.Name != "cloud-private-key") {
			exposed = append(exposed, fmt.Sprintf("%s %s/%s: %s", o.Kind, o.Namespace, o.Name, strings.Join(o.Holds, ", ")))
		}
	}
	if found := l.secrets.In(l.log.copyText()); len(found) > 0 {
		exposed = append(exposed, "the operator's log: "+strings.Join(found, ", "))
	}
	return append(exposed, l.inCommandLines(l.secrets)...), nil
}

// exposedIn checks each state of each object. Each object is reported once.
func exposedIn(changes []testenv.Change, secrets secretscan.Secrets) (exposed []string) {
	for _, c := range changes {
		text, err := json.Marshal(c.Object)
		if err != nil {
			exposed = append(exposed, fmt.Sprintf("%s %s cannot be looked at: %v", c.Kind, c.Name, err))
			continue
		}
		what := fmt.Sprintf("%s %s", c.Kind, c.Name)
		if found := secrets.In(text); len(found) > 0 && !slices.ContainsFunc(exposed, func(known string) bool {
			return strings.HasPrefix(known, what+" ")
		}) {
			exposed = append(exposed, what+" at "+formatPosition(c)+": "+strings.Join(found, ", "))
		}
	}
	return exposed
}

func (l *lab) inCommandLines(secrets secretscan.Secrets) (exposed []string) {
	for _, h := range l.allHosts() {
		machines := []*fake.Machine{h.Machine()}
		if record := l.hosts[h.Options.Name]; record != nil {
			machines = record.machines
		}
		for _, machine := range machines {
			for _, e := range machine.Journal().Entries(nil) {
				if found := secrets.In([]byte(e.Detail)); len(found) > 0 {
					exposed = append(exposed, fmt.Sprintf("%s, %s: %s", h.Options.Name, e.Kind, strings.Join(found, ", ")))
				}
			}
		}
	}
	return slices.Compact(exposed)
}
