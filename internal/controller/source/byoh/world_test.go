package byoh

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/source"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
	"github.com/windows-machine-config/wmco/internal/policy/nodestate"
	"github.com/windows-machine-config/wmco/internal/policy/ownership"
)

// world is a cluster with hosts, as far as the list of hosts and instances of one host are concerned. The decisions in
// it are the product's; its work on hosts is a step each.
type world struct {
	list      map[string]string // nil when the ConfigMap is not there
	hosts     map[string]*machine
	nodes     map[string]*corev1.Node
	instances map[string]*v1alpha1.WindowsInstance
	// writes are what the source is about to write, and works the reconciles that are under way: a kill ends both.
	writes []source.Change
	works  map[string]*work
	made   int // objects so far, for their UIDs
	broken []string
}

// machine is a host: where it is listed leads to it.
type machine struct {
	name       string
	configured bool
	drained    bool // and not in service since
}

// work is a reconcile of an instance that is under way.
type work struct {
	next func() (struct{}, bool)
	stop func()
}

// keysOf are the keys under which a host may be listed.
func keysOf(host int) []string {
	return []string{fmt.Sprintf("10.0.0.%d", host), fmt.Sprintf("win-%d.example.com", host),
		fmt.Sprintf("WIN-%d.example.com", host)}
}

func newWorld(hosts int) *world {
	w := &world{list: map[string]string{}, hosts: map[string]*machine{}, nodes: map[string]*corev1.Node{},
		instances: map[string]*v1alpha1.WindowsInstance{}, works: map[string]*work{}}
	for i := range hosts {
		m := &machine{name: fmt.Sprintf("win-%d", i)}
		for _, key := range keysOf(i) {
			w.hosts[key] = m
		}
	}
	return w
}

func (w *world) uid() string {
	w.made++
	return fmt.Sprintf("uid-%d", w.made)
}

func (w *world) all() []v1alpha1.WindowsInstance {
	var all []v1alpha1.WindowsInstance
	for _, name := range slices.Sorted(maps.Keys(w.instances)) {
		all = append(all, *w.instances[name].DeepCopy())
	}
	return all
}

// read has the source read the list.
func (w *world) read() {
	desired, _ := desiredInstances("wmco", w.list)
	w.writes = changes(w.all(), desired)
}

// write has the source write its next change.
func (w *world) write() {
	if len(w.writes) == 0 {
		return
	}
	change := w.writes[0]
	w.writes = w.writes[1:]
	present, ok := w.instances[change.After.Name]
	switch {
	case change.Creates() && !ok:
		instance := change.After.DeepCopy()
		instance.UID = types.UID(w.uid())
		instance.CreationTimestamp = metav1.NewTime(time.Unix(int64(1<<30+w.made/4), 0))
		w.instances[instance.Name] = instance
	case !change.Creates() && ok:
		present.Spec = change.After.Spec
	}
}

// kill ends the operator and all that it is about to do.
func (w *world) kill() {
	w.writes = nil
	for name, work := range w.works {
		work.stop()
		delete(w.works, name)
	}
}

// step lets the reconcile of an instance get as far as its next write, and reports whether it is still under way.
func (w *world) step(name string) bool {
	if w.works[name] == nil {
		if w.instances[name] == nil {
			return false
		}
		next, stop := iter.Pull(w.reconcile(name))
		w.works[name] = &work{next, stop}
	}
	if _, goesOn := w.works[name].next(); !goesOn {
		delete(w.works, name)
		return false
	}
	return true
}

// reconcile is what the instance controller does with an instance. It yields after each write.
func (w *world) reconcile(name string) iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		r := &reconciling{world: w, instance: w.instances[name].DeepCopy(), yield: yield}
		r.host = w.hosts[r.instance.Spec.Address]
		if r.instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
			r.remove()
			return
		}
		r.join()
	}
}

type reconciling struct {
	*world
	instance *v1alpha1.WindowsInstance
	host     *machine
	yield    func(struct{}) bool
}

// pause reports whether the operator still runs after a write.
func (r *reconciling) pause() bool { return r.yield(struct{}{}) }

// patch writes the status, and reports whether the operator still runs.
func (r *reconciling) patch() bool {
	if present := r.instances[r.instance.Name]; present != nil && present.UID == r.instance.UID {
		present.Status = *r.instance.Status.DeepCopy()
	}
	return r.pause()
}

func (r *reconciling) node() *corev1.Node {
	if r.instance.Status.NodeRef == nil {
		return nil
	}
	return r.nodes[r.instance.Status.NodeRef.Name]
}

func (r *reconciling) ownNode() *corev1.Node {
	if node := r.node(); node != nil && ownership.Owns(r.instance, node, r.all()) {
		return node
	}
	return nil
}

func (r *reconciling) claim() nodename.Claim {
	return nodename.Claim{Instance: *r.instance, NodeName: r.host.name, Node: r.nodes[r.host.name], Others: r.all()}
}

// remember is the phase of that name.
func (r *reconciling) remember() {
	if r.instance.Status.HostKey != nil {
		return
	}
	for _, node := range r.nodes {
		if node.Annotations[v1alpha1.AnnotationInstance] == r.instance.Name && ownership.Owns(r.instance, node, r.all()) {
			r.instance.Status.NodeRef = &v1alpha1.NodeReference{Name: node.Name, UID: string(node.UID), Confirmed: true}
			r.instance.Status.HostKey = &v1alpha1.HostKey{Key: node.Annotations[v1alpha1.AnnotationHostKey]}
		}
	}
}

// inspect pins the host key and learns what the host is.
func (r *reconciling) inspect() bool {
	r.instance.Status.HostKey = &v1alpha1.HostKey{Key: r.host.name}
	if !r.patch() {
		return false
	}
	r.instance.Status.Host = &v1alpha1.HostStatus{MachineID: r.host.name, Addresses: []string{r.host.name}}
	return r.patch()
}

func (r *reconciling) join() {
	r.remember()
	status := &r.instance.Status
	if node := r.node(); status.SpecDigest != "" && node != nil && !nodestate.Unproven(node) &&
		node.Annotations[v1alpha1.AnnotationInstance] == r.instance.Name && r.host.configured {
		return // idle; without its kubelet the node is not Ready, and the host is repaired after a grace
	}
	if !r.inspect() || !r.hasName() {
		return
	}
	status.SpecDigest = ""
	if !r.patch() {
		return
	}
	r.host.configured = true
	if !r.pause() {
		return
	}
	if r.nodes[r.host.name] == nil {
		r.nodes[r.host.name] = &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: r.host.name, UID: types.UID(r.uid()), Annotations: map[string]string{},
				Labels: map[string]string{corev1.LabelOSStable: "windows"}},
			Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: v1alpha1.TaintNotReady}}},
		}
		if !r.pause() {
			return
		}
	}
	r.serve()
}

// hasName is the phase claim.
func (r *reconciling) hasName() bool {
	status := &r.instance.Status
	if status.NodeRef != nil && status.NodeRef.Confirmed {
		if nodename.StillHeld(r.claim()).Allowed {
			return true
		}
		status.NodeRef, status.SpecDigest = nil, ""
		r.patch()
		return false
	}
	status.NodeRef = &v1alpha1.NodeReference{Name: r.host.name}
	if !r.patch() {
		return false
	}
	switch decision := nodename.Grant(r.claim()); {
	case decision.Allowed:
		status.NodeRef.Confirmed = true
		return r.patch()
	case !decision.Passes:
		status.NodeRef = nil
		r.patch()
	}
	return false
}

// serve binds the Node and hands it to the scheduler.
func (r *reconciling) serve() {
	node := r.nodes[r.host.name]
	if node == nil || !nodename.StillGranted(r.claim()).Allowed {
		return
	}
	node.Annotations[v1alpha1.AnnotationInstance] = r.instance.Name
	node.Annotations[v1alpha1.AnnotationHostKey] = r.instance.Status.HostKey.Key
	r.instance.Status.NodeRef.UID = string(node.UID)
	if !r.pause() || !r.patch() {
		return
	}
	node.Spec.Taints = nil
	// Work on an instance that is marked for removal meanwhile goes on to its end, and may take a node into service that
	// another instance of the host has drained to give it back. That is not judged here.
	if present := r.instances[r.instance.Name]; present != nil &&
		present.Spec.DesiredState != v1alpha1.DesiredStateRemoved {
		r.host.drained = false
	}
	if !r.pause() {
		return
	}
	r.instance.Status.SpecDigest = "digest"
	r.patch()
}

// fate is the phase handOver; it reports whether the instance may go on.
func (r *reconciling) fate() (handedOver, goesOn bool) {
	fate, _ := ownership.FateOf(r.instance, r.node(), r.all())
	return fate == ownership.Stays, fate == ownership.Stays || fate == ownership.GivenBack
}

func (r *reconciling) remove() {
	r.remember()
	handedOver, goesOn := r.fate()
	if !goesOn {
		r.patch()
		return
	}
	if !handedOver {
		if r.ownNode() != nil {
			r.host.drained = true
			if !r.pause() {
				return
			}
		}
		if r.instance.Status.HostKey != nil {
			if handedOver, goesOn = r.giveBack(); !goesOn {
				return
			}
		}
	}
	if node := r.ownNode(); node != nil {
		delete(r.nodes, node.Name)
		if !r.pause() {
			return
		}
	}
	if present := r.instances[r.instance.Name]; present != nil && present.UID == r.instance.UID {
		delete(r.instances, r.instance.Name)
	}
}

// giveBack is the phase of that name.
func (r *reconciling) giveBack() (handedOver, goesOn bool) {
	if !r.inspect() {
		return false, false
	}
	if handedOver, goesOn = r.fate(); handedOver || !goesOn {
		return handedOver, goesOn
	}
	// What happens between the look at the other instances and the agent's work counts as one: it takes milliseconds.
	if node := r.nodes[r.host.name]; node != nil && !nodestate.Unproven(node) && !r.host.drained && r.host.configured {
		r.broken = append(r.broken, fmt.Sprintf("%s gives %s back under the pods of its node, which is bound to %s", r.instance.Name, r.host.name, node.Annotations[v1alpha1.AnnotationInstance]))
	}
	r.host.configured, r.instance.Status.SpecDigest = false, ""
	return false, r.patch()
}
