package testenv

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// AvailabilityReport counts the unavailable nodes.
type AvailabilityReport struct {
	// MaxUnavailable is the maximum number of simultaneously unavailable Windows nodes, counting Machines and BYOH
	// hosts together. MaxByPool is the maximum for each MachineSet, and for the BYOH hosts under "". A node is
	// unavailable while it is missing, not Ready, unschedulable, or tainted as not verified, or while kubelet or
	// containerd does not run.
	MaxUnavailable int
	MaxByPool      map[string]int
	// MaxDisruptions is the maximum number of simultaneous entries in the WindowsDisruptionPolicy.
	MaxDisruptions int
	// Ungated are the nodes that the operator cordoned, and Machines that were deleted, without an entry in the
	// policy at that moment.
	Ungated []string
	// MinHealthy is the minimum number of selected pods that were Ready and not being deleted; -1 if no pods are
	// followed.
	MinHealthy int
	// Disrupted are the nodes that were unavailable, in the order of their first unavailability.
	Disrupted []string
	// Timeline has a line for each change of the set of unavailable nodes, or of the number of healthy pods.
	Timeline []string
	// Lost is the number of watches that could not resume after an interruption. The missed changes were read from
	// the API server's history.
	Lost int
}

// replay is the state of all followed objects at one moment.
type replay struct {
	started  time.Time
	except   map[string]bool
	pods     bool
	nodes    map[string]*corev1.Node
	machines map[string]*machinev1.Machine
	policy   []v1alpha1.Disruption
	healthy  map[string]bool
	stopped  map[string]map[string]bool // services by host key

	sets      map[string]int // number of available Machines of each MachineSet at the beginning
	hosts     []string       // BYOH nodes that were available at the beginning
	was       string
	report    AvailabilityReport
	disrupted map[string]bool
}

// newReplay returns the state at the beginning.
func (a *Availability) newReplay(initial []Change) *replay {
	r := &replay{
		started: a.started, except: map[string]bool{}, pods: len(a.options.PodLabels) > 0, nodes: map[string]*corev1.Node{},
		machines: map[string]*machinev1.Machine{}, healthy: map[string]bool{}, stopped: map[string]map[string]bool{},
		sets: map[string]int{}, disrupted: map[string]bool{},
	}
	r.report.MaxByPool, r.report.MinHealthy = map[string]int{}, -1
	for _, name := range a.options.Except {
		r.except[name] = true
	}
	for _, c := range initial {
		r.apply(c)
	}
	r.recordExpected()
	return r
}

// recordExpected records the available nodes as the expected ones.
func (r *replay) recordExpected() {
	for _, machine := range r.machines {
		if r.machineAvailable(machine) == "" && !r.except[machine.Name] {
			r.sets[setOf(machine)]++
		}
	}
	for _, node := range r.nodes {
		_, isBYOH := node.Labels[v1alpha1.LabelBYOH]
		if isBYOH && !r.except[node.Name] && r.nodeAvailable(node.Name, node.Name) == "" {
			r.hosts = append(r.hosts, node.Name)
		}
	}
	slices.Sort(r.hosts)
	if r.pods {
		r.report.MinHealthy = len(r.healthy)
	}
	r.countUnavailable(r.started)
}

// run replays all changes in order.
func (r *replay) run(changes []Change, services []serviceChange) AvailabilityReport {
	for _, c := range changes {
		for len(services) > 0 && !services[0].at.After(c.At) {
			r.applyService(services[0])
			services = services[1:]
		}
		r.recordUngated(c)
		r.apply(c)
		r.countUnavailable(c.At)
	}
	for _, s := range services {
		r.applyService(s)
	}
	return r.report
}

// apply applies a change of an object to the state.
func (r *replay) apply(c Change) {
	switch object := c.Object.(type) {
	case *corev1.Node:
		r.nodes[object.Name] = object
	case *machinev1.Machine:
		r.machines[object.Name] = object
	case *v1alpha1.WindowsDisruptionPolicy:
		r.policy = object.Status.Disruptions
		r.report.MaxDisruptions = max(r.report.MaxDisruptions, len(r.policy))
	case *corev1.Pod:
		if object.DeletionTimestamp == nil && isPodReady(object) {
			r.healthy[c.Name] = true
		} else {
			delete(r.healthy, c.Name)
		}
	case nil:
		_, name, _ := strings.Cut(c.Name, "/")
		switch c.Kind {
		case kindNode:
			delete(r.nodes, name)
		case kindMachine:
			delete(r.machines, name)
		case kindPolicy:
			r.policy = nil
		case kindPod:
			delete(r.healthy, c.Name)
		}
	}
}

// applyService applies the start or stop of a service to the state.
func (r *replay) applyService(s serviceChange) {
	services := nodeServices
	if s.service != "" {
		services = []string{s.service}
	}
	for _, service := range services {
		if r.stopped[s.host] == nil {
			r.stopped[s.host] = map[string]bool{}
		}
		if r.stopped[s.host][service] = true; s.running {
			delete(r.stopped[s.host], service)
		}
	}
	r.countUnavailable(s.at)
}

// recordUngated records disruptions that the operator starts without an entry in the policy.
func (r *replay) recordUngated(c Change) {
	switch object := c.Object.(type) {
	case *corev1.Node:
		before := r.nodes[object.Name]
		if isCordonedByOperator(object) && (before == nil || !isCordonedByOperator(before)) &&
			!r.hasDisruption(func(d v1alpha1.Disruption) bool {
				return d.Node == object.Name
			}) {
			r.report.Ungated = append(r.report.Ungated, "node "+object.Name+" was made unschedulable at "+r.formatTime(c.At))
		}
	case *machinev1.Machine:
		before := r.machines[object.Name]
		if object.DeletionTimestamp != nil && before != nil && before.DeletionTimestamp == nil && !r.except[object.Name] &&
			!r.hasDisruption(func(d v1alpha1.Disruption) bool { return d.Machine == object.Name }) {
			r.report.Ungated = append(r.report.Ungated, "Machine "+object.Name+" was deleted at "+r.formatTime(c.At))
		}
	}
}

func (r *replay) hasDisruption(which func(v1alpha1.Disruption) bool) bool {
	return slices.ContainsFunc(r.policy, which)
}

// countUnavailable counts the nodes that are unavailable now.
func (r *replay) countUnavailable(at time.Time) {
	pools, reasons := map[string]int{}, []string{}
	for _, name := range r.hosts {
		if reason := r.nodeAvailable(name, name); reason != "" {
			pools[""]++
			reasons = append(reasons, name+" "+reason)
			r.recordDisrupted(name)
		}
	}
	available := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(r.machines)) {
		machine := r.machines[name]
		if reason := r.machineAvailable(machine); reason == "" {
			available[setOf(machine)]++
		} else if !r.except[name] && r.sets[setOf(machine)] > 0 {
			reasons = append(reasons, name+" "+reason)
			r.recordDisrupted(name)
		}
	}
	for set, want := range r.sets {
		pools[set] = max(0, want-available[set])
	}
	total := 0
	for pool, n := range pools {
		total += n
		r.report.MaxByPool[pool] = max(r.report.MaxByPool[pool], n)
	}
	r.report.MaxUnavailable = max(r.report.MaxUnavailable, total)
	line := fmt.Sprintf("%d unavailable: %s", total, strings.Join(reasons, "; "))
	if r.pods {
		r.report.MinHealthy = min(r.report.MinHealthy, len(r.healthy))
		line += fmt.Sprintf("; %d pods healthy", len(r.healthy))
	}
	if line != r.was {
		r.was = line
		r.report.Timeline = append(r.report.Timeline, r.formatTime(at)+" "+line)
	}
}

func (r *replay) recordDisrupted(name string) {
	if !r.disrupted[name] {
		r.disrupted[name] = true
		r.report.Disrupted = append(r.report.Disrupted, name)
	}
}

func (r *replay) formatTime(at time.Time) string {
	return fmt.Sprintf("%7.3f s", at.Sub(r.started).Seconds())
}

// machineAvailable returns "" if the Machine's node accepts pods, and the reason otherwise.
func (r *replay) machineAvailable(machine *machinev1.Machine) string {
	switch {
	case machine.DeletionTimestamp != nil:
		return "is being deleted"
	case machine.Status.NodeRef == nil:
		return "has no node"
	}
	return r.nodeAvailable(machine.Status.NodeRef.Name, kindMachine+"/"+machine.Name)
}

// nodeAvailable returns "" if the node accepts pods, and the reason otherwise.
func (r *replay) nodeAvailable(name, host string) string {
	node := r.nodes[name]
	if node == nil {
		return "has no Node"
	}
	if services := slices.Sorted(maps.Keys(r.stopped[host])); len(services) > 0 {
		return "is without " + strings.Join(services, " and ")
	}
	if isCordonedByOperator(node) {
		return "is cordoned by the operator"
	}
	if node.Spec.Unschedulable {
		return "is unschedulable"
	}
	if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintNotReady }) {
		return "is not proven"
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return "is not Ready"
}

func isCordonedByOperator(node *corev1.Node) bool {
	_, cordonedByOperator := node.Annotations[v1alpha1.AnnotationCordoned]
	return cordonedByOperator && node.Spec.Unschedulable
}

func setOf(machine *machinev1.Machine) string { return machine.Labels[labelMachineSet] }

func isPodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
