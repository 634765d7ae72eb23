package wine_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	machinev1 "github.com/openshift/api/machine/v1beta1"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/fakemachineapi"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/wine"
	"github.com/windows-machine-config/wmco/lab/winetestenv"
)

const machineSet = "windows"

// administratorsKeys is the file in which OpenSSH for Windows stores the keys of administrators.
const administratorsKeys = `C:\ProgramData\ssh\administrators_authorized_keys`

// On AWS the image accepts no login: the user data installs the key and opens the ports. The node has the name that
// the platform's metadata service reports to the host, and a route to that service. On vSphere the template
// contains the key, independent of the user data, and the host is restarted to get the Machine's name. R-026,
//
//
func TestMachineSet_ScaledUpAndToZero(t *testing.T) {
	requireWine(t)
	t.Run("on AWS", func(t *testing.T) {
		l := newMachineLab(t, "AWS")
		machine, node, h := l.scaleUp(testenv.MachineSetOptions{})
		if want := testenv.MachineDNSName("AWS", addressOf(h)); node.Name != want {
			t.Errorf("the node is called %s, want %s", node.Name, want)
		}
		t.Run("the host admits the user that the user data names, and nobody else", func(t *testing.T) {
			if got, want := keysOf(t, h), ssh.MarshalAuthorizedKey(l.PublicKey()); !bytes.Equal(got, want) {
				t.Errorf("the keys of administrators are %q, want %q", got, want)
			}
			rules := strings.Join(registryLines(t, h, firewallKey), "\n")
			for _, port := range []string{"|LPort=22|", "|LPort=10250|"} {
				if !strings.Contains(rules, port) {
					t.Errorf("the firewall has no rule with %s:\n%s", port, rules)
				}
			}
		})
		l.scaleToZero(machine, node.Name, h)
	})
	t.Run("on vSphere", func(t *testing.T) {
		l := newMachineLab(t, "VSphere")
		machine, node, h := l.scaleUp(testenv.MachineSetOptions{UserDataSecret: "worker-user-data-managed"})
		if node.Name != machine || nodeName(h) == machine {
			t.Errorf("the host %s of Machine %s has become the node %s", h.Name(), machine, node.Name)
		}
		l.scaleToZero(machine, node.Name, h)
	})
}

// machineLab is a cluster on a platform with Wine hosts as Machines. The operator runs.
type machineLab struct {
	*lab
	cloud *winetestenv.Cloud
}

func newMachineLab(t *testing.T, platform string) *machineLab {
	t.Helper()
	l := &machineLab{lab: newInstalledLab(t, testenv.Options{ControlPlane: cluster.Options{Platform: platform, APIIntURL: apiURL}})}
	k, err := kit()
	requireNoError(t, err)
	log := slog.New(logr.ToSlogHandler(ctrl.Log.WithName("cloud")))
	l.cloud = k.NewCloud(t.Context(), l.Environment, winetestenv.CloudOptions{
		Addresses: []netip.Addr{hostAddress(int(addresses.Add(1) - 1))}, Logger: log,
		Host: wine.Options{Gateway: gateway, Names: map[string]netip.Addr{apiName: gateway}},
	})
	t.Cleanup(func() {
		if err := l.cloud.Close(); err != nil {
			t.Errorf("close the cloud: %v", err)
		}
	})
	l.scaleLinuxToZero()

	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if err := fakemachineapi.Run(ctx, l.Config, fakemachineapi.Options{Cloud: l.cloud, Platform: l.Platform(),
			Logger: log}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); group.Wait() })
	l.run()
	return l
}

// scaleUp creates a MachineSet without Machines according to the guide, and scales it to 1.
func (l *machineLab) scaleUp(options testenv.MachineSetOptions) (machine string, node *corev1.Node, h *wine.Host) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), waitTimeout)
	defer cancel()
	requireNoError(l.T, l.CreateMachineSet(ctx, machineSet, 0, options))
	requireNoError(l.T, l.WaitUserData(ctx))
	requireNoError(l.T, l.Scale(ctx, machineSet, 1))
	names, err := l.WaitMachinesReady(ctx, machineSet, 1)
	if err != nil {
		l.Fatalf("%v%s", err, l.explainHosts())
	}
	machine, h = names[0], l.cloud.Host(names[0])

	got, err := l.Machine(ctx, machine)
	requireNoError(l.T, err)
	node = &corev1.Node{}
	requireNoError(l.T, l.Client.Get(ctx, client.ObjectKey{Name: got.Status.NodeRef.Name}, node))
	for label, want := range map[string]string{"node.openshift.io/os_id": "Windows", "node-role.kubernetes.io/worker": "",
		corev1.LabelOSStable: "windows"} {
		if got, ok := node.Labels[label]; !ok || got != want {
			l.Errorf("label %s is %q (there: %t), want %q", label, got, ok, want)
		}
	}
	if _, ok := node.Labels["windowsmachineconfig.openshift.io/byoh"]; ok {
		l.Error("the node is marked as a host that somebody has brought")
	}
	if boots := h.Boots(); boots != 2 {
		l.Errorf("%d boots, want the first and one restart for all that needs one", boots)
	}
	refused, err := h.Refused()
	requireNoError(l.T, err)
	if len(refused) > 0 {
		l.Errorf("programs of Windows were needed: %q", refused)
	}
	return machine, node, h
}

// scaleToZero scales the MachineSet, and checks that nothing is left.
func (l *machineLab) scaleToZero(machine, node string, h *wine.Host) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), waitTimeout)
	defer cancel()
	drive, err := h.Path(`C:\`)
	requireNoError(l.T, err)
	requireNoError(l.T, l.Scale(ctx, machineSet, 0))
	requireNoError(l.T, l.WaitMachineGone(ctx, machine, node))
	if l.cloud.Host(machine) != nil {
		l.Error("the Machine is gone, and its virtual machine is not")
	}
	if _, err := os.Stat(drive); !errors.Is(err, fs.ErrNotExist) {
		l.Errorf("the host's drive is left: %v", err)
	}
}

// scaleLinuxToZero removes the Linux Machines, which have no hosts.
func (l *machineLab) scaleLinuxToZero() {
	l.Helper()
	var sets machinev1.MachineSetList
	requireNoError(l.T, l.Client.List(l.Context(), &sets, client.InNamespace(v1alpha1.MachineNamespace)))
	for _, set := range sets.Items {
		requireNoError(l.T, l.Scale(l.Context(), set.Name, 0))
	}
}

// explainHosts returns a report about the hosts for a failed test.
func (l *machineLab) explainHosts() string {
	machines, err := l.Machines(context.WithoutCancel(l.Context()), machineSet)
	if err != nil {
		return err.Error()
	}
	text := ""
	for _, machine := range machines {
		if h := l.cloud.Host(machine.Name); h != nil {
			text += "\nhost " + h.Name() + " of Machine " + machine.Name + ": " + formatHostReport(h)
		}
	}
	return text
}

func keysOf(t *testing.T, h *wine.Host) []byte {
	t.Helper()
	path, err := h.Path(administratorsKeys)
	requireNoError(t, err)
	keys, err := os.ReadFile(path)
	requireNoError(t, err)
	return keys
}
