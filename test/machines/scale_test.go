package machines

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/userdata"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/rig/rigtest"
)

type machine = machinev1.Machine

//
func TestAMachineSetIsScaledBesideBringYourOwnHosts(t *testing.T) {
	l := start(t, "AWS", rig.Options{Hosts: rig.Hosts(2), LinuxNodes: 1, BareNodes: true})
	before := len(l.audit())
	l.operate()
	l.must(l.ListHosts(t.Context()))
	l.machineSet("windows", 0, rig.MachineSetOptions{Labels: map[string]string{"example.com/pool": "web"}})
	l.scale("windows", 3)
	names := l.ready("windows", 3)
	first := l.userData()
	l.inTime(func(ctx context.Context) error { return l.WaitReady(ctx) })

	//
	t.Run("each Machine has a node with the labels of the Machine", func(t *testing.T) {
		for _, name := range names {
			node := l.nodeOf(name)
			for label, want := range map[string]string{
				v1alpha1.LabelWorker: "", "example.com/pool": "web", v1alpha1.LabelOSID: "Windows", corev1.LabelOSStable: "windows",
			} {
				if got, ok := node.Labels[label]; !ok || got != want {
					t.Errorf("label %s of node %s is %q (there: %t), want %q", label, node.Name, got, ok, want)
				}
			}
			if _, ok := node.Labels[v1alpha1.LabelBYOH]; ok {
				t.Errorf("node %s is marked as a host that somebody has brought", node.Name)
			}
		}
	})
	//
	t.Run("columns are those that the guides show", func(t *testing.T) {
		for resource, want := range map[string]string{
			"machinesets": `(?m)^NAME +DESIRED +CURRENT +READY +AVAILABLE +AGE +$[\s\S]*^windows +3 +3 +3 +3 +`,
			"machines":    `(?m)^NAME +PHASE +TYPE +REGION +ZONE +AGE +$[\s\S]*^` + names[0] + ` +Running +`,
		} {
			if got := l.table(resource); !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("kubectl get %s prints\n%s", resource, got)
			}
		}
	})

	marked := names[1]
	t.Run("scaled down, the set gives up the Machine that was marked, and all of it goes", func(t *testing.T) {
		m, err := l.Machine(t.Context(), marked)
		l.must(err)
		node := l.nodeOf(marked).Name
		after := m.DeepCopy()
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, "machine.openshift.io/delete-machine", "true")
		l.must(l.Client.Patch(t.Context(), after, client.MergeFrom(m)))
		l.scale("windows", 2)
		l.inTime(func(ctx context.Context) error { return l.WaitMachineGone(ctx, marked, node) })
		if left := l.ready("windows", 2); slices.Contains(left, marked) || !slices.Contains(left, names[0]) || !slices.Contains(left, names[2]) {
			t.Errorf("left are %v of %v", left, names)
		}
	})
	t.Run("a Machine that is deleted is replaced, and its replacement becomes a node", func(t *testing.T) {
		node := l.nodeOf(names[0]).Name
		l.must(l.DeleteMachine(t.Context(), names[0]))
		l.inTime(func(ctx context.Context) error { return l.WaitMachineGone(ctx, names[0], node) })
		if left := l.ready("windows", 2); slices.Contains(left, names[0]) {
			t.Errorf("Machine %s is there again", names[0])
		}
	})
	t.Run("user data is one Secret for all Machines", func(t *testing.T) {
		secret := l.userData()
		if settings, err := userdata.ParseHeader(secret.Data["userData"]); err != nil || settings.PublicKey != l.authorizedKey() {
			t.Errorf("it lets in %q (%v)", settings.PublicKey, err)
		}
		if secret.UID != first.UID || !reflect.DeepEqual(secret.Data, first.Data) {
			t.Error("it is not the one that the first Machine had")
		}
	})
	t.Run("Linux Machines and nodes, and all Machines, were never written to", func(t *testing.T) {
		l.neverWritten(t, l.audit()[before:])
	})
}

// userData is the Secret that all Machines name.
func (l lab) userData() *corev1.Secret {
	l.Helper()
	secret := &corev1.Secret{}
	l.must(l.Client.Get(l.Context(), client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: "windows-user-data"}, secret))
	return secret
}

// table is what `kubectl get` prints of a resource: the API server makes the columns.
func (l lab) table(resource string) string {
	l.Helper()
	config := rest.CopyConfig(l.Config)
	config.GroupVersion, config.APIPath = &machinev1.GroupVersion, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	api, err := rest.RESTClientFor(config)
	l.must(err)
	raw, err := api.Get().Namespace(v1alpha1.MachineNamespace).Resource(resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(l.Context())
	l.must(err)
	table := &metav1.Table{}
	l.must(json.Unmarshal(raw, table))
	var b strings.Builder
	writer := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	line := func(cell func(i int) any) {
		for i, column := range table.ColumnDefinitions {
			if column.Priority == 0 {
				fmt.Fprintf(writer, "%v\t", cell(i))
			}
		}
		fmt.Fprintln(writer)
	}
	line(func(i int) any { return strings.ToUpper(table.ColumnDefinitions[i].Name) })
	for _, row := range table.Rows {
		line(func(i int) any { return row.Cells[i] })
	}
	l.must(writer.Flush())
	return b.String()
}

// audit is the API server's audit log so far.
func (l lab) audit() []byte {
	l.Helper()
	log, err := os.ReadFile(l.Cluster().AuditLog)
	l.must(err)
	return log
}

// neverWritten checks in a part of the audit log that the operator wrote neither to Machines nor to nodes that are not Windows.
func (l lab) neverWritten(t *testing.T, log []byte) {
	t.Helper()
	var nodes corev1.NodeList
	l.must(l.Client.List(t.Context(), &nodes, client.MatchingLabels{corev1.LabelOSStable: "linux"}))
	if len(nodes.Items) == 0 {
		t.Fatal("the cluster has no Linux node")
	}
	linux := map[string]bool{}
	for _, node := range nodes.Items {
		linux[node.Name] = true
	}
	lines, seen := bufio.NewScanner(bytes.NewReader(log)), 0
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			Verb string
			User struct{ Username string }
			Ref  struct{ Resource, Name string } `json:"objectRef"`
		}
		l.must(json.Unmarshal(lines.Bytes(), &entry))
		if entry.User.Username != "system:serviceaccount:"+l.Namespace()+":windows-machine-config-operator" {
			continue
		}
		seen++
		if slices.Contains([]string{"get", "list", "watch"}, entry.Verb) {
			continue
		}
		if strings.HasPrefix(entry.Ref.Resource, "machine") || entry.Ref.Resource == "nodes" && linux[entry.Ref.Name] {
			t.Errorf("the operator did %s %s %s", entry.Verb, entry.Ref.Resource, entry.Ref.Name)
		}
	}
	l.must(lines.Err())
	if seen == 0 {
		t.Error("the audit log has nothing of the operator: this test shows nothing")
	}
}

func TestTenMachinesAreConfiguredAtOnceAndABrokenOneDelaysNone(t *testing.T) {
	l := start(t, "AWS", rig.Options{})
	mend := l.InjectVM(rig.VMFault{Machine: "broken-*", UserDataHangs: true})
	defer mend()
	l.operate()
	l.machineSet("broken", 1, rig.MachineSetOptions{})
	broken := l.only("broken")
	for _, zone := range []string{"a", "b", "c"} {
		l.machineSet("windows-"+zone, 3, rig.MachineSetOptions{})
	}
	for _, zone := range []string{"a", "b", "c"} {
		l.ready("windows-"+zone, 3)
	}
	instance, err := l.MachineInstance(t.Context(), broken)
	l.must(err)
	if rig.IsReady(instance) {
		t.Fatal("the broken one is Ready: this test shows nothing")
	}
	mend()
	l.ready("broken", 1)
}

//
func TestARestartedOperatorLeavesTheHostsOfMachinesAlone(t *testing.T) {
	l := start(t, "AWS", rig.Options{})
	first := l.operate()
	l.machineSet("windows", 2, rig.MachineSetOptions{})
	names := l.ready("windows", 2)
	l.must(first.Stop())
	before := map[string]int{}
	for _, name := range names {
		before[name] = len(l.MachineHost(name).Machine().Journal().Entries(nil))
	}
	l.operate()
	// Another Machine shows that the restarted operator has been through all of them.
	l.machineSet("another", 1, rig.MachineSetOptions{})
	l.ready("another", 1)
	for _, name := range names {
		entries := l.MachineHost(name).Machine().Journal().Entries(nil)[before[name]:]
		if touched := slices.DeleteFunc(entries, rigtest.OfTheHost); len(touched) > 0 {
			t.Errorf("the operator touched host %s: %+v", name, touched)
		}
	}
}
