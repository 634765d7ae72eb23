package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// awaitInstances triggers an event, waits until all instances reach the desired state, and returns the seconds until
// each of them did, in ascending order. The measurement overhead of one event does not grow with the fleet.
func (l *lab) awaitInstances(ctx context.Context, what string, trigger func(context.Context) error,
	isDesired func(*v1alpha1.WindowsInstance) bool) (arrivals []float64, seconds float64, err error) {
	start := time.Now()
	if err := trigger(ctx); err != nil {
		return nil, 0, err
	}
	p := &progress{isDesired: isDesired, since: map[string]time.Time{}, missing: map[string]*v1alpha1.WindowsInstance{}}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var watcher watch.Interface
	for len(p.since) < l.Hosts {
		if watcher == nil { // the API server ends watches after some minutes
			if watcher, err = l.env.Client.Watch(ctx, &v1alpha1.WindowsInstanceList{}, client.InNamespace(l.env.Namespace())); err != nil {
				return nil, 0, fmt.Errorf("watch the instances: %w", err)
			}
		}
		select {
		case event, open := <-watcher.ResultChan():
			if instance, ok := event.Object.(*v1alpha1.WindowsInstance); ok && open {
				p.recordEvent(event.Type, instance, time.Now())
			} else {
				watcher.Stop()
				watcher = nil
			}
		case <-ticker.C:
			err = l.checkRunning()
		case <-ctx.Done():
			err = fmt.Errorf("wait for %s: %w; %d of %d are; of the others:\n%s", what, context.Cause(ctx), len(p.since), l.Hosts, p.explainMissing())
		}
		if err != nil {
			break
		}
	}
	if watcher != nil {
		watcher.Stop()
	}
	for _, at := range p.since {
		arrivals = append(arrivals, at.Sub(start).Seconds())
	}
	slices.Sort(arrivals)
	return arrivals, time.Since(start).Seconds(), err
}

// progress tracks the instances that have reached the desired state, and the missing ones.
type progress struct {
	isDesired func(*v1alpha1.WindowsInstance) bool
	since     map[string]time.Time
	missing   map[string]*v1alpha1.WindowsInstance
}

func (p *progress) recordEvent(kind watch.EventType, instance *v1alpha1.WindowsInstance, now time.Time) {
	name := instance.Name
	_, before := p.since[name]
	switch as := p.isDesired(instance); {
	case kind == watch.Deleted:
		delete(p.since, name)
		delete(p.missing, name)
	case as && !before:
		p.since[name] = now
		delete(p.missing, name)
	case !as:
		delete(p.since, name)
		p.missing[name] = instance
	}
}

// explainMissing returns the reasons for some of the missing instances.
func (p *progress) explainMissing() string {
	const some = 3
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(p.missing)) {
		if i == some {
			break
		}
		b.WriteString(testenv.Explain(p.missing[name]))
	}
	return b.String()
}
