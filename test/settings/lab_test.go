// Package settings proves end to end that Windows nodes follow the settings of their cluster: each is changed as an administrator does, and
// what becomes of it on every host is compared with what should. It runs on the real control plane with the rights that deploy/ gives;
// Windows hosts are simulated, and workloads run in name.
package settings

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// controlPlanes are started when a test first asks for them: one without a cloud, on which most tests are, and those of clouds.
var controlPlanes = map[string]*clustertest.Shared{}

func init() {
	for _, platform := range []string{"None", "AWS", "GCP", "Azure"} {
		controlPlanes[platform] = clustertest.New(cluster.Options{
			Profile: cluster.OpenShift, Platform: platform, APIIntURL: "https://127.0.0.1", Audit: true,
		})
	}
}

func TestMain(m *testing.M) {
	logTo(os.Getenv("OPERATOR_LOG"))
	code := m.Run()
	if common.rig != nil {
		if err := common.rig.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "close the lab:", err)
			code = 1
		}
	}
	for _, p := range controlPlanes {
		code = max(code, p.Stop())
	}
	if dir, _ := madePayload(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// logTo writes what operators log to a file, for a look at a failed test; nowhere without a path.
func logTo(path string) {
	if path == "" {
		ctrl.SetLogger(logr.Discard())
		return
	}
	file, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	ctrl.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(file)))
}

// madePayload is made once for all tests.
var madePayload = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "wmco-test-payload-")
	if err != nil {
		return "", err
	}
	_, err = payload.Generate(dir, "", "1.0.0-lab", payload.Options{SizePercent: 5})
	return dir, err
})

// limit is how long a test waits for what takes some seconds, on a busy machine.
const limit = rig.Patience

// hosts is how many there are in the lab that most tests share.
const hosts = 3

// lab is a rig with its test.
type lab struct {
	*testing.T
	*rig.Rig
}

// common is the lab that most tests share. They come one after the other.
var common struct {
	once sync.Once
	rig  *rig.Rig
	err  error
}

// shared is the lab that most tests share: hosts that are Ready nodes.
func shared(t *testing.T) lab {
	t.Helper()
	c := controlPlanes["None"].Cluster(t)
	common.once.Do(func() {
		common.rig, common.err = begin(context.Background(), c, rig.Options{Hosts: rig.Hosts(hosts), LinuxNodes: 1})
		if common.err == nil {
			common.err = deploy(context.Background(), common.rig)
		}
	})
	if common.err != nil {
		t.Fatal(common.err)
	}
	l := lab{t, common.rig}
	t.Cleanup(l.explain)
	return l
}

// begin boots a lab with hosts, on a control plane, with an operator that has made all of them Ready. What is to be so before the operator
// runs is prepared.
func begin(ctx context.Context, c *cluster.Cluster, options rig.Options, prepare ...func(context.Context, *rig.Rig) error) (*rig.Rig, error) {
	dir, err := madePayload()
	if err != nil {
		return nil, err
	}
	options.Cluster, options.PayloadDir, options.Log = c, dir, ctrl.Log
	r, err := rig.New(ctx, options)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, step := range []func() error{
		func() error { _, err := r.InstallOperator(ctx, ""); return err },
		func() error { return r.CreateKey(ctx) },
		func() error {
			for _, each := range prepare {
				if err := each(ctx, r); err != nil {
					return err
				}
			}
			return nil
		},
		func() error { _, err := r.RunOperator(); return err },
		func() error { return r.ListHosts(ctx) },
		func() error { return r.WaitReady(ctx) },
	} {
		if err := step(); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// must ends the test when something that is not its subject fails.
func (l lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// within runs a wait that must end in time.
func (l lab) within(limit time.Duration, wait func(ctx context.Context) error) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), limit)
	defer cancel()
	l.must(wait(ctx))
}

// eventually waits until the condition holds, which is asked again whenever an object of the watched kind changes.
func (l lab) eventually(what string, watched client.Object, condition func(ctx context.Context, reader client.Reader) (bool, error)) {
	l.Helper()
	l.within(limit, func(ctx context.Context) error { return l.WaitFor(ctx, what, watched, condition) })
}

// nodeOf is the Node of a host as it is now.
func (l lab) nodeOf(h *rig.Host) *corev1.Node {
	l.Helper()
	node := &corev1.Node{}
	l.must(l.Client.Get(l.Context(), client.ObjectKey{Name: h.NodeName()}, node))
	return node
}

// explain logs how far everything is, when the test has failed.
func (l lab) explain() {
	if !l.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var instances v1alpha1.WindowsInstanceList
	if err := l.Client.List(ctx, &instances); err != nil {
		l.Log(err)
	}
	var b strings.Builder
	for i := range instances.Items {
		b.WriteString(rig.Explain(&instances.Items[i]))
	}
	p := &v1alpha1.WindowsDisruptionPolicy{}
	if err := l.Client.Get(ctx, client.ObjectKey{Namespace: l.Namespace(), Name: v1alpha1.DisruptionPolicyName}, p); err != nil {
		l.Log(err)
	}
	l.Logf("the instances:\n%s\nthe policy's status: %+v", b.String(), p.Status)
}
