package prometheus

import (
	"context"
	"maps"
	"slices"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/monitoring"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

//
func TestPrometheusShowsWindowsNodesAndAlerts(t *testing.T) {
	l := start(t)
	t.Run("Prometheus scrapes each node and the operator", func(t *testing.T) {
		l.T = t
		l.until("three targets to be up", func(ctx context.Context) (bool, error) {
			up, err := l.query(ctx, "up == 1")
			return up.with("job", monitoring.Name) == 2 && up.with("job", monitoring.OperatorName) == 1 && len(up) == 3 &&
				up.with("instance", "instance-1") == 1 && up.with("instance", "instance-2") == 1, err
		})
	})
	t.Run("the console's figures of each node are there", func(t *testing.T) {
		l.T = t
		for _, expr := range []string{
			`instance:node_cpu_utilisation:rate1m > 0 < 1`,   //nolint:misspell // others have chosen the name
			`instance:node_memory_utilisation:ratio > 0 < 1`, //nolint:misspell // others have chosen the name
			`1 - node_filesystem_avail_bytes{device="/C:"} / node_filesystem_size_bytes{device="/C:"} > 0 < 1`,
			`rate(node_network_receive_bytes_total[1m]) > 0`,
			`node_boot_time_seconds < time()`,
		} {
			l.until(expr+" of both nodes", func(ctx context.Context) (bool, error) {
				found, err := l.query(ctx, expr)
				return found.with("instance", "instance-1") == 1 && found.with("instance", "instance-2") == 1 && len(found) == 2, err
			})
		}
	})
	t.Run("a host that shows another key sets off one alert, which ends once the key is accepted", func(t *testing.T) {
		l.T = t
		l.changedKey()
	})
}

func (l lab) changedKey() {
	const host = "instance-1"
	instance, err := l.Instance(l.Context(), host)
	l.must(err)
	about := func(want string) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			alerts, err := l.alerts(ctx)
			firing := slices.DeleteFunc(alerts, func(a alert) bool { return a.State != "firing" })
			if want == "" {
				return len(firing) == 0, err
			}
			return len(firing) == 1 && firing[0].Labels["alertname"] == want && firing[0].Labels["name"] == instance.Name &&
				firing[0].Labels["severity"] == "warning", err
		}
	}
	l.until("no alert", about(""))
	l.Host(host).Inject(winhost.ChangedHostKey, winhost.Parameters{})
	// So that the operator connects.
	l.annotate(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host}}, v1alpha1.AnnotationRebootRequired, "patches")
	l.until("WindowsHostKeyChanged of "+host+" alone", about("WindowsHostKeyChanged"))

	key, err := l.Host(host).HostKey()
	l.must(err)
	l.annotate(instance, v1alpha1.AnnotationAcceptHostKey, ssh.FingerprintSHA256(key))
	l.until("no alert any more", about(""))
}

func (l lab) annotate(object client.Object, name, value string) {
	l.Helper()
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		l.Fatalf("%T is no object", object)
	}
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	object.SetAnnotations(annotations)
	l.must(l.Client.Patch(l.Context(), object, client.MergeFrom(before)))
}
