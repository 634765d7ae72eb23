package fakemachineapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (f *fixture) newSet(name string, replicas int32, edit ...func(*machinev1.MachineSet)) *machinev1.MachineSet {
	f.t.Helper()
	labels := map[string]string{"machine.openshift.io/cluster-api-machineset": name}
	set := &machinev1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Spec: machinev1.MachineSetSpec{
			Replicas: &replicas, Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: machinev1.MachineTemplateSpec{
				ObjectMeta: machinev1.ObjectMeta{Labels: mergeMaps(labels, map[string]string{labelOS: Windows})},
				Spec: machinev1.MachineSpec{
					ObjectMeta:   machinev1.ObjectMeta{Labels: map[string]string{"node-role.kubernetes.io/worker": ""}},
					ProviderSpec: awsSpec("ami-1", "")},
			},
		},
	}
	for _, e := range edit {
		e(set)
	}
	f.requireNoError(f.Create(f.t.Context(), set))
	return set
}

// machinesOfSet returns the Machines of a set that are not being deleted.
func (f *fixture) machinesOfSet(ctx context.Context, set string) ([]machinev1.Machine, error) {
	list := &machinev1.MachineList{}
	err := f.List(ctx, list, client.InNamespace(f.namespace),
		client.MatchingLabels{"machine.openshift.io/cluster-api-machineset": set})
	return slices.DeleteFunc(list.Items, func(m machinev1.Machine) bool { return !m.DeletionTimestamp.IsZero() }), err
}

func (f *fixture) awaitMachines(set string, n int, phases ...string) []machinev1.Machine {
	f.t.Helper()
	var machines []machinev1.Machine
	f.pollUntil(fmt.Sprintf("MachineSet %s has %d Machines %v", set, n, phases), func(ctx context.Context) (bool, error) {
		var err error
		machines, err = f.machinesOfSet(ctx, set)
		ok := !slices.ContainsFunc(machines, func(m machinev1.Machine) bool {
			return len(phases) > 0 && !slices.Contains(phases, currentPhase(&m))
		})
		return len(machines) == n && ok, err
	})
	return machines
}

func (f *fixture) awaitStatus(what, set string, condition func(machinev1.MachineSetStatus) bool) *machinev1.MachineSet {
	f.t.Helper()
	s := &machinev1.MachineSet{}
	f.pollUntil(what, func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: set}, s)
		return err == nil && condition(s.Status), err
	})
	return s
}

func machineNames(machines []machinev1.Machine) []string {
	var all []string
	for _, m := range machines {
		all = append(all, m.Name)
	}
	return all
}

//
func TestMachineSet(t *testing.T) {
	f := start(t)
	set := f.newSet("lab-win-us-east-1b", 2)
	machines := f.awaitMachines(set.Name, 2, machinev1.PhaseProvisioned)
	for _, m := range machines {
		if !regexp.MustCompile(`^lab-win-us-east-1b-[bcdfghjklmnpqrstvwxz2456789]{5}$`).MatchString(m.Name) ||
			!metav1.IsControlledBy(&m, set) {
			t.Errorf("Machine %s, owners %v", m.Name, m.OwnerReferences)
		}
		if _, worker := m.Spec.Labels["node-role.kubernetes.io/worker"]; !worker || m.Labels[labelOS] != Windows {
			t.Errorf("Machine %s has labels %v, and for its Node %v", m.Name, m.Labels, m.Spec.Labels)
		}
	}
	for i := range machines {
		f.joinNode(&machines[i], corev1.ConditionTrue)
	}
	s := f.awaitStatus("both are available", set.Name, func(s machinev1.MachineSetStatus) bool {
		return s.AvailableReplicas == 2
	})
	if s.Status.Replicas != 2 || s.Status.FullyLabeledReplicas != 2 || s.Status.ReadyReplicas != 2 ||
		s.Status.ObservedGeneration != s.Generation {
		t.Errorf("status %+v", s.Status)
	}
	checkColumns(t, f)

	// A deleted Machine is replaced at once, with the image in the changed template.
	updateObject(f, set, func(s *machinev1.MachineSet) { s.Spec.Template.Spec.ProviderSpec = awsSpec("ami-2", "") })
	var changed machinev1.MachineSet
	f.requireNoError(f.Get(t.Context(), client.ObjectKeyFromObject(set), &changed))
	f.awaitStatus("the new template is known", set.Name, func(s machinev1.MachineSetStatus) bool {
		return s.ObservedGeneration == changed.Generation
	})
	f.requireNoError(f.Delete(t.Context(), &machines[0]))
	f.awaitGone(&machines[0])
	now := f.awaitMachines(set.Name, 2, machinev1.PhaseProvisioned, machinev1.PhaseRunning)
	for _, m := range now {
		image := f.memory.createdFor(m.Name)[0].Image
		if old := m.Name == machines[1].Name; old && image != "ami-1" || !old && image != "ami-2" {
			t.Errorf("Machine %s was made of %s", m.Name, image)
		}
	}

	// kubectl scale deletes the annotated Machine first, although another Machine has no Node.
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	f.requireNoError(f.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale)))
	f.awaitMachines(set.Name, 3, machinev1.PhaseProvisioned, machinev1.PhaseRunning)
	updateObject(f, &machines[1], func(m *machinev1.Machine) {
		m.Annotations = mergeMaps(m.Annotations, map[string]string{annotationDelete: "true"})
	})
	updateObject(f, set, func(s *machinev1.MachineSet) { s.Spec.Replicas = ptr.To[int32](2) })
	f.awaitGone(&machines[1])
	left := f.awaitMachines(set.Name, 2)
	if slices.Contains(machineNames(left), machines[1].Name) {
		t.Errorf("left are %v", machineNames(left))
	}

	f.requireNoError(f.Delete(t.Context(), set))
	f.awaitMachines(set.Name, 0)
	f.pollUntil("the cloud is empty", func(context.Context) (bool, error) { return f.memory.countMachines() == 0, nil })
}

// checkColumns checks the tables that kubectl get prints.
func checkColumns(t *testing.T, f *fixture) {
	config := rest.CopyConfig(lab.Cluster(t).Config)
	plain, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string]string{
		"machinesets": "NAME DESIRED CURRENT READY AVAILABLE AGE | lab-win-us-east-1b 2 2 2 2",
		"machines":    "NAME PHASE TYPE REGION ZONE AGE | Running m5a.large us-east-1 us-east-1b",
	} {
		if got := fetchTable(t, plain, config.Host+"/apis/machine.openshift.io/v1beta1/namespaces/"+f.namespace+"/"+
			resource); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", resource, got, want)
		}
	}
}

// fetchTable returns the header and the first row of a table, without ages and names with random characters.
func fetchTable(t *testing.T, c *http.Client, url string) string {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	result := &metav1.Table{}
	if err := json.NewDecoder(response.Body).Decode(result); err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, column := range result.ColumnDefinitions {
		if column.Priority == 0 {
			words = append(words, strings.ToUpper(column.Name))
		}
	}
	words = append(words, "|")
	for i, cell := range result.Rows[0].Cells {
		if text := fmt.Sprint(cell); result.ColumnDefinitions[i].Priority == 0 &&
			!regexp.MustCompile(`-[a-z0-9]{5}$`).MatchString(text) {
			words = append(words, text)
		}
	}
	return strings.Join(words, " ")
}

//
func TestMachineSet_MachinesInZoneOfSet(t *testing.T) {
	f := start(t)
	for _, zone := range []string{"a", "b", "c"} {
		f.newSet("win-"+zone, 1, func(s *machinev1.MachineSet) {
			s.Spec.Template.Spec.ProviderSpec = rawSpec(map[string]any{
				"ami": map[string]any{"id": "ami-1"}, "placement": map[string]any{"region": "us-east-1",
					"availabilityZone": "us-east-1" + zone}})
		})
	}
	for _, zone := range []string{"a", "b", "c"} {
		m := f.awaitMachines("win-"+zone, 1, machinev1.PhaseProvisioned)[0]
		if m.Labels[labelZone] != "us-east-1"+zone {
			t.Errorf("Machine %s is in zone %s", m.Name, m.Labels[labelZone])
		}
	}
}

func TestMachineSet_ForeignSelectorRejected(t *testing.T) {
	f := start(t)
	set := f.newSet("wrong", 1, func(s *machinev1.MachineSet) {
		s.Spec.Template.Labels = map[string]string{"other": "label"}
	})
	s := f.awaitStatus("it has an error", set.Name, func(s machinev1.MachineSetStatus) bool {
		return s.ErrorReason != nil
	})
	if *s.Status.ErrorReason != machinev1.InvalidConfigurationMachineSetError ||
		!strings.Contains(*s.Status.ErrorMessage, "spec.selector") {
		t.Errorf("%s: %s", *s.Status.ErrorReason, *s.Status.ErrorMessage)
	}
	f.awaitEvent("ReconcileError", set.Name)
	if f.memory.countMachines() != 0 {
		t.Error("it has made Machines")
	}
	updateObject(f, set, func(s *machinev1.MachineSet) { s.Spec.Template.Labels = s.Spec.Selector.MatchLabels })
	f.awaitMachines(set.Name, 1)
	f.awaitStatus("the error is gone", set.Name, func(s machinev1.MachineSetStatus) bool { return s.ErrorReason == nil })
}

func TestMachineSet_AdoptsOrphan(t *testing.T) {
	f := start(t)
	orphan := f.newMachine("orphan", func(m *machinev1.Machine) {
		m.Labels = map[string]string{"machine.openshift.io/cluster-api-machineset": "set"}
	})
	set := f.newSet("set", 1)
	f.awaitMachine("it is the set's", orphan.Name, func(m *machinev1.Machine) bool {
		return metav1.IsControlledBy(m, set)
	})
	f.awaitStatus("the set counts it", "set", func(s machinev1.MachineSetStatus) bool {
		return s.Replicas == 1 && s.FullyLabeledReplicas == 0
	})
	f.awaitMachines("set", 1)
}

func TestMachineSet_MinReadySecondsDelaysAvailability(t *testing.T) {
	f := start(t, fastClock)
	f.newSet("slow", 1, func(s *machinev1.MachineSet) { s.Spec.MinReadySeconds = 600 })
	m := f.awaitMachines("slow", 1, machinev1.PhaseProvisioned)[0]
	node := f.joinNode(&m, corev1.ConditionTrue)
	f.awaitStatus("it is ready", "slow", func(s machinev1.MachineSetStatus) bool { return s.ReadyReplicas == 1 })
	f.awaitStatus("it is available", "slow", func(s machinev1.MachineSetStatus) bool { return s.AvailableReplicas == 1 })
	if waited := f.clock.Since(node.Status.Conditions[0].LastTransitionTime.Time); waited.Seconds() < 600 {
		t.Errorf("it was available after %s", waited)
	}
}

// A Machine that cannot be created must not block other Machines.
func TestMachine_FailedCreationDoesNotBlockMachines(t *testing.T) {
	f := start(t, func(o *Options, _ *fixture) { o.Workers = 1 })
	f.faults.Fail(Create, "broken-*", errors.New("out of capacity"))
	f.newSet("broken", 3)
	f.newSet("good", 3)
	f.awaitMachines("good", 3, machinev1.PhaseProvisioned)
	f.awaitMachines("broken", 3, machinev1.PhaseProvisioning)
}
