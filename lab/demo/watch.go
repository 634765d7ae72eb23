package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// redraw is how often the view is drawn at most, and elapsed times move.
const (
	redrawEvery = 100 * time.Millisecond
	tickEvery   = time.Second
)

// board is what is known of all instances.
type board struct {
	rows      map[string]row
	instances map[string]*v1alpha1.WindowsInstance
	machines  map[string]row // Windows Machines, with an instance or without
}

// update takes an event, and reports whether what is shown of the instance has changed.
func (b *board) update(kind watch.EventType, instance *v1alpha1.WindowsInstance, now time.Time) (row, bool) {
	before, known := b.rows[instance.Name]
	if kind == watch.Deleted {
		delete(b.rows, instance.Name)
		delete(b.instances, instance.Name)
		before.status, before.step, before.detail = "removed", "", fate(instance)
		return before, true
	}
	r := rowOf(instance)
	r.started = now
	if known {
		r.started = before.started
	}
	if r.ready {
		if r.ended = before.ended; r.ended.IsZero() {
			r.ended = now
		}
	}
	b.rows[r.name], b.instances[r.name] = r, instance
	return r, r.status != before.status || r.step != before.step || r.detail != before.detail
}

func rowOf(instance *v1alpha1.WindowsInstance) row {
	status := instance.Status
	r := row{name: instance.Name, address: instance.Spec.Address, status: status.Summary, ready: rig.IsReady(instance)}
	if instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
		r.ready = false
	}
	switch {
	case r.status == "":
		r.status = "New"
	case r.status == v1alpha1.ReasonReady && !r.ready: // what was asked for now is not in the status yet
		r.status = "Changed"
	}
	if r.detail = obstacle(instance); r.ready && status.NodeRef != nil {
		r.detail = "node " + status.NodeRef.Name
	}
	if step := status.Step; step != nil && !r.ready {
		if r.detail = step.Name; step.Detail != "" {
			r.detail += ": " + step.Detail
		}
		if step.Of > 0 {
			r.step = fmt.Sprintf("%d/%d", step.Index, step.Of)
		}
	}
	return r
}

// fate is what became of the host of a deleted instance.
func fate(instance *v1alpha1.WindowsInstance) string {
	switch {
	case instance.Spec.Source.Machine != nil && instance.Spec.DesiredState != v1alpha1.DesiredStateNode:
		return "its Machine is gone"
	case instance.Spec.DesiredState != v1alpha1.DesiredStateRemoved:
		return "by somebody: it is made again, and the host is not touched"
	case instance.Status.HostKey == nil:
		return "the host was never reached"
	case instance.Annotations[v1alpha1.AnnotationForgetHost] == "true":
		return "the host was left as it is"
	}
	return "the host was given back"
}

// obstacle is what stands in the way of Ready.
func obstacle(instance *v1alpha1.WindowsInstance) string {
	for _, condition := range instance.Status.Conditions {
		if condition.Status != metav1.ConditionTrue && condition.Reason == instance.Status.Summary {
			return condition.Message
		}
	}
	return instance.Status.NextAction
}

func (b *board) list() []row {
	rows := make([]row, 0, len(b.rows))
	for _, r := range b.rows {
		rows = append(rows, r)
	}
	for name, r := range b.machines {
		if _, ok := b.rows[name]; !ok {
			rows = append(rows, r)
		}
	}
	return rows
}

func (b *board) allReady(expected int) bool {
	for _, r := range b.rows {
		if !r.ready {
			return false
		}
	}
	return len(b.rows) >= expected
}

func newBoard() *board {
	return &board{rows: map[string]row{}, instances: map[string]*v1alpha1.WindowsInstance{}, machines: map[string]row{}}
}

// watch shows how far the hosts are until all are Ready. With --once it ends after the limit as well, and says what is
// missing.
func (d *demo) watch(ctx context.Context) error {
	b := d.board
	var limit <-chan time.Time
	if d.once {
		limit = time.After(d.limit)
	}
	d.output.println("")
	err := d.observe(ctx, limit, func() bool { return b.allReady(d.expected()) })
	d.output.settle()
	if err == nil {
		d.output.step("all %d hosts are Ready", d.expected())
		return nil
	}
	if errors.Is(err, errNotReady) {
		d.output.println(fmt.Sprintf("\nNot all hosts are Ready after %s:\n", d.limit))
	}
	if ctx.Err() == nil {
		d.explain(b)
	}
	return err
}

// expected is how many hosts are to be Ready.
func (o *demoOptions) expected() int { return o.hosts + o.wantedMachines() }

// follow prints what changes, after all hosts were Ready, until the end.
func (d *demo) follow(ctx context.Context) error {
	d.output.terminal = -1 // lines from here on
	return d.observe(ctx, nil, func() bool { return false })
}

// observe keeps the board until done says so.
func (d *demo) observe(ctx context.Context, limit <-chan time.Time, done func() bool) error {
	instances, machines := &stream{open: d.watchInstances}, &stream{open: d.watchMachines}
	defer instances.close()
	defer machines.close()
	if err := errors.Join(instances.start(ctx), machines.start(ctx)); err != nil {
		return err
	}
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	var drawn time.Time
	for !done() {
		var err error
		select {
		case event, open := <-instances.ResultChan():
			err = d.take(ctx, instances, event, open)
		case event, open := <-machines.ResultChan():
			err = d.take(ctx, machines, event, open)
		case <-ticker.C:
		case <-limit:
			err = errNotReady
		case <-d.operator.Done():
			err = d.restartOperator()
		case <-d.prometheus.done():
			err = d.prometheus.Failure()
		case <-d.rig.Cluster().Done():
			err = errors.New("the control plane has ended")
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if d.output.interactive() && (time.Since(drawn) >= redrawEvery || done()) { // else the ticker shows it
			drawn = time.Now()
			d.output.draw(render(d.board.list(), d.expected(), drawn, d.output.screen()))
		}
	}
	return nil
}

// stream is a watch that is opened again whenever the API server ends it, which it does after some minutes.
type stream struct {
	watch.Interface
	open func(context.Context) (watch.Interface, error)
}

func (s *stream) start(ctx context.Context) error {
	s.close()
	next, err := s.open(ctx)
	if err == nil {
		s.Interface = next
	}
	return err
}

func (s *stream) close() {
	if s.Interface != nil {
		s.Stop()
	}
}

func (d *demo) watchInstances(ctx context.Context) (watch.Interface, error) {
	watcher, err := d.rig.Client.Watch(ctx, &v1alpha1.WindowsInstanceList{}, client.InNamespace(rig.Namespace))
	if err != nil {
		return nil, fmt.Errorf("watch the instances: %w", err)
	}
	return watcher, nil
}

// take enters an event into the board.
func (d *demo) take(ctx context.Context, s *stream, event watch.Event, open bool) error {
	if !open {
		return s.start(ctx)
	}
	switch object := event.Object.(type) {
	case *v1alpha1.WindowsInstance:
		d.show(d.board, event.Type, object)
	case *machinev1.Machine:
		d.showMachine(d.board, event.Type, object)
	}
	return nil
}

// show enters an event into the board, and prints it where no view is drawn.
func (d *demo) show(b *board, kind watch.EventType, instance *v1alpha1.WindowsInstance) {
	r, changed := b.update(kind, instance, time.Now())
	if changed && !d.output.interactive() {
		d.output.step("%s", line(r))
	}
}

// showMachine does so for a Machine.
func (d *demo) showMachine(b *board, kind watch.EventType, machine *machinev1.Machine) {
	r, changed := b.updateMachine(kind, machine, time.Now())
	if changed && !d.output.interactive() {
		d.output.step("%s", line(r))
	}
}

// line returns a row where there are no columns.
func line(r row) string {
	text := fmt.Sprintf("%s (%s): %s", r.name, cmp.Or(r.address, "no address yet"), r.status)
	if r.step != "" {
		text += " " + r.step
	}
	if r.detail != "" {
		text += ", " + r.detail
	}
	return text
}

// explain says of each host that is not Ready why.
func (d *demo) explain(b *board) {
	listed := map[string]bool{}
	for name, instance := range b.instances {
		listed[instance.Spec.Address] = true
		if !b.rows[name].ready {
			d.output.println(rig.Explain(instance))
		}
	}
	for name, r := range b.machines {
		if b.instances[name] == nil {
			d.output.println(line(r))
		}
	}
	for address := range d.listed() {
		if !listed[address] {
			d.output.println(address + ": there is no WindowsInstance for it; see the operator's log: " + d.log)
		}
	}
}
