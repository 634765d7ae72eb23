package settings

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

const kubeProxyConfig = `C:\k\kube-proxy.conf`

// hasSubnet reports whether the pod network, the plugins and kube-proxy of a host have a pod subnet, and kube-proxy
// an address in it.
func hasSubnet(h *testenv.Host, subnet string) bool {
	s := h.Machine().Snapshot()
	network := slices.ContainsFunc(s.Networks, func(n host.HNSNetwork) bool {
		return n.Name == overlayNetwork && n.Subnet == subnet
	})
	return network && strings.Contains(readHostFile(h, cniConfig), `"`+subnet+`"`) &&
		strings.Contains(readHostFile(h, kubeProxyConfig), `"`+subnet+`"`) &&
		slices.ContainsFunc(s.Endpoints, func(e host.HNSEndpoint) bool {
			return e.Network == overlayNetwork && strings.Contains(readHostFile(h, kubeProxyConfig), `"`+e.Address+`"`)
		})
}

//
func TestPodSubnet_NetworkFollowsChange(t *testing.T) {
	l := sharedLab(t)
	h, otherHosts := l.withPods()
	node, before := l.nodeOf(h), l.takeSnapshots()
	for _, c := range []struct{ way, subnet string }{
		{"to another one", "10.133.2.0/23"}, {"and back", node.Annotations[v1alpha1.AnnotationPodSubnet]},
	} {
		t.Run(c.way, func(t *testing.T) {
			l := lab{t, l.Environment}
			pods, digests := l.waitForPods(), l.specDigests()
			on := podsOn(pods, node.Name)
			watch, err := l.WatchAvailability(l.Context(), testenv.AvailabilityOptions{PodNamespace: workloadNamespace,
				PodLabels: workloadLabels})
			l.requireNoError(err)
			defer watch.Stop()
			patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationPodSubnet, c.subnet)
			l.requireNoError(l.Client.Patch(l.Context(), node.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))))

			l.awaitCondition("the node to have followed", &v1alpha1.WindowsInstance{},
				func(ctx context.Context, reader client.Reader) (bool, error) {
					changed := func(digest string) bool { return !slices.Contains(digests, digest) }
					done, err := l.isFleetDone(ctx, reader, changed, hostAddresses(otherHosts)...)
					return done && hasSubnet(h, c.subnet), err
				})
			l.waitForNoDisruption()
			after := l.waitForPods()
			var report testenv.AvailabilityReport
			l.runWithTimeout(waitTimeout, func(ctx context.Context) (err error) {
				report, err = watch.Report(ctx)
				return err
			})
			if !slices.Equal(report.Disrupted, []string{node.Name}) || report.MaxDisruptions != 1 || len(report.Ungated) > 0 ||
				report.MinHealthy < replicas-1 {
				t.Errorf("the gate was not asked, or others were disturbed: %+v", report)
			}
			if n := countMoved(pods, after); n != on {
				t.Errorf("%d pods are others; %d had an address of the subnet that the node has no more", n, on)
			}
			for _, other := range otherHosts {
				if got := diffSnapshots(before[other.Options.Name], takeSnapshot(other)); len(got) > 0 {
					t.Errorf("host %s follows the subnet of another: %s", other.Options.Name, got)
				}
			}
			l.waitForIdle()
		})
	}
	if got := diffSnapshots(before[h.Options.Name], takeSnapshot(h)); len(got) > 0 {
		t.Errorf("the host is not as it was: %s", got)
	}
}

// withPods returns a host with a node that runs pods, and the other hosts.
func (l lab) withPods() (h *testenv.Host, otherHosts []*testenv.Host) {
	l.Helper()
	pods := l.waitForPods()
	for _, each := range l.Hosts() {
		if h == nil && podsOn(pods, each.NodeName()) > 0 {
			h = each
			continue
		}
		otherHosts = append(otherHosts, each)
	}
	return h, otherHosts
}

// hostAddresses returns the listed addresses of hosts.
func hostAddresses(hosts []*testenv.Host) (addresses []string) {
	for _, h := range hosts {
		address, _ := h.Entry()
		addresses = append(addresses, address)
	}
	return addresses
}

// podsOn returns the number of pods on a node.
func podsOn(pods map[types.UID]string, node string) (n int) {
	for _, on := range pods {
		if on == node {
			n++
		}
	}
	return n
}
