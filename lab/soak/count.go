package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

const (
	kibi = 1 << 10
	mebi = 1 << 20
)

// measureDay measures all values at the end of a day. It then deletes Events and completed certificate requests,
// as the cluster does within hours of real time.
func (l *lab) measureDay(ctx context.Context) (Day, error) {
	values, totals := Day{}, Day{}
	if err := l.countObjects(ctx, values); err != nil {
		return nil, err
	}
	l.countHosts(values, totals)
	lines, bytes, err := l.log.readTotals()
	if err != nil {
		return nil, fmt.Errorf("write the operator's log: %w", err)
	}
	totals[LogLines], totals[LogBytes] = float64(lines), float64(bytes)/kibi
	for name, total := range totals {
		values[name] = total - l.counted[name]
	}
	maps.Copy(l.counted, totals)
	if err := countSeries(values); err != nil {
		return nil, err
	}
	for _, h := range l.allHosts() {
		h.Machine().Journal().DropEntries()
	}
	l.DropDeletedHosts()
	l.signer.DropSigned()
	return values, countProcess(values)
}

// allHosts returns all existing hosts.
func (l *lab) allHosts() []*testenv.Host {
	l.DropDeletedHosts()
	return append(l.Hosts(), l.MachineHosts()...)
}

// countObjects counts the objects of the API. Objects that live for an hour of real time are counted and
// deleted.
func (l *lab) countObjects(ctx context.Context, values Day) error {
	var brief []*unstructured.Unstructured
	err := cluster.EachObject(ctx, l.Config, func(object *unstructured.Unstructured) error {
		switch {
		case object.GetKind() == "Event":
			if object.GroupVersionKind().Group != "" { // each is listed in both groups
				values[EventsCreated]++
				brief = append(brief, object)
			}
			return nil
		case object.GetKind() == "CertificateSigningRequest":
			values[Requests]++
			if certificate, _, _ := unstructured.NestedString(object.Object, "status", "certificate"); certificate != "" {
				brief = append(brief, object)
			}
			return nil
		}
		text, err := json.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("look at %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		values[Objects]++
		values[objectsOf+object.GroupVersionKind().GroupKind().String()]++
		values[ObjectBytes] += float64(len(text)) / kibi
		return nil
	})
	if err != nil {
		return err
	}
	for _, object := range brief {
		if err := client.IgnoreNotFound(l.Client.Delete(ctx, object)); err != nil {
			return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// filling maps the prefix of a path to the maximum number of such files on a host, which some hosts reach only
// after months. For each certificate, this is a link, the file in use, and the two previous files that the
// agent keeps. For each agent command that writes, this is one record.
var filling = map[string]int{
	`C:\var\lib\kubelet\pki\`: 2 * 4, `C:\k\hybrid-overlay-node\pki\`: 4, `C:\k\cloud-node-manager\pki\`: 4,
	`C:\k\wicd\last-`: 7,
}

// countHosts counts files and Windows events.
func (l *lab) countHosts(values, totals Day) {
	for _, h := range l.allHosts() {
		files := h.Machine().Snapshot().Files
		values[HostFiles] += float64(countFiles(files))
		for _, file := range files {
			values[HostBytes] += float64(file.Size) / mebi
		}
		totals[HostEvents] += float64(len(h.Machine().Events()))
	}
}

// countFiles counts the files of a host. A filling kind always counts as full, and higher only if more files
// exist: the current number depends on the length of a day and on the events of the host.
func countFiles(files map[string]fake.FileSnapshot) (count int) {
	of := map[string]int{}
	for path := range files {
		for beginning := range filling {
			if strings.HasPrefix(path, beginning) {
				of[beginning]++
			}
		}
	}
	count = len(files)
	for beginning, full := range filling {
		count += max(0, full-of[beginning])
	}
	return count
}

// countSeries counts the series of the operator's metrics.
func countSeries(values Day) error {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return fmt.Errorf("read the operator's metrics: %w", err)
	}
	for _, family := range families {
		values[Series] += float64(len(family.GetMetric()))
	}
	return nil
}

// countProcess measures this process, which runs the operator.
func countProcess(values Day) error {
	runtime.GC()
	runtime.GC() // frees the objects with finalizers found by the first one
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	values[Heap] = float64(memory.HeapAlloc) / mebi
	goroutines, err := countGoroutines()
	if err != nil {
		return err
	}
	values[Goroutines] = float64(goroutines)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("count the open files: %w", err)
	}
	values[OpenFiles] = float64(len(files))
	return nil
}
