// Package settings verifies end to end that Windows nodes follow the settings of their cluster. Each setting is
// changed as an administrator does, and the result on every host is compared with the expected result. The tests
// run on the real control plane with the RBAC rules of deploy/. Windows hosts and workloads are simulated.
package settings

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// controlPlanes holds the control planes, each started at its first use: one without a cloud for most tests, and
// one per cloud.
var controlPlanes = map[string]*clustertest.Shared{}

func init() {
	for _, platform := range []string{"None", "AWS", "GCP", "Azure"} {
		controlPlanes[platform] = clustertest.New(cluster.Options{
			Profile: cluster.OpenShift, Platform: platform, APIIntURL: "https://127.0.0.1", Audit: true,
		})
	}
}

func TestMain(m *testing.M) {
	cleanups := []func() int{closeCommon, files.Remove}
	for _, p := range controlPlanes {
		cleanups = append(cleanups, p.Stop)
	}
	os.Exit(e2e.Main(m, cleanups...))
}

// closeCommon ends the shared lab.
func closeCommon() int {
	if common.env == nil {
		return 0
	}
	if err := common.env.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "close the lab:", err)
		return 1
	}
	return 0
}

var files = e2e.NewPayload("", payload.Options{SizePercent: 5})

const waitTimeout = e2e.WaitTimeout

// hosts is the number of hosts in the shared lab.
const hosts = 3

// lab is an environment with a test.
type lab struct {
	*testing.T
	*testenv.Environment
}

// common is the lab that most tests share, one after the other.
var common struct {
	once sync.Once
	env  *testenv.Environment
	err  error
}

// sharedLab returns the shared lab, where all hosts are Ready nodes.
func sharedLab(t *testing.T) lab {
	t.Helper()
	options := testenv.Options{Cluster: controlPlanes["None"].Cluster(t), PayloadDir: files.Directory(t),
		Hosts: testenv.Hosts(hosts), LinuxNodes: 1}
	common.once.Do(func() {
		common.env, common.err = bootLab(context.Background(), options)
		if common.err == nil {
			common.err = deployWorkload(context.Background(), common.env)
		}
	})
	if common.err != nil {
		t.Fatal(common.err)
	}
	l := lab{t, common.env}
	t.Cleanup(l.explainFailure)
	return l
}

// bootLab boots a lab with an operator that has made all hosts Ready. The prepare functions run before the operator.
func bootLab(ctx context.Context, options testenv.Options, prepare ...func(context.Context, *testenv.Environment) error) (*testenv.Environment,
	error) {
	options.Log = ctrl.Log
	r, err := testenv.New(ctx, options)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
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
		func() error { return awaitServing(ctx, r) },
	} {
		if err := step(); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// awaitServing waits until the kubelet of each host has its serving certificate, possibly after the node is Ready.
// Later comparisons must not report the certificate as a change.
func awaitServing(ctx context.Context, r *testenv.Environment) error {
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return !slices.ContainsFunc(r.Hosts(), func(h *testenv.Host) bool {
			_, err := h.Machine().Drive().ReadFile(servingCertificate)
			return err != nil
		}), nil
	})
}

const servingCertificate = `C:\var\lib\kubelet\pki\kubelet-server-current.pem`

// requireNoError ends the test when a step outside the subject of the test fails.
func (l lab) requireNoError(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// runWithTimeout runs a wait with a time limit.
func (l lab) runWithTimeout(limit time.Duration, wait func(ctx context.Context) error) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), limit)
	defer cancel()
	l.requireNoError(wait(ctx))
}

// awaitCondition waits until the condition holds, checked after each change of the watched kind.
func (l lab) awaitCondition(what string, watched client.Object, condition func(ctx context.Context,
	reader client.Reader) (bool, error)) {
	l.Helper()
	l.runWithTimeout(waitTimeout, func(ctx context.Context) error { return l.WaitFor(ctx, what, watched, condition) })
}

// nodeOf returns the current Node of a host.
func (l lab) nodeOf(h *testenv.Host) *corev1.Node {
	l.Helper()
	node := &corev1.Node{}
	l.requireNoError(l.Client.Get(l.Context(), client.ObjectKey{Name: h.NodeName()}, node))
	return node
}

// explainFailure logs the state of the lab if the test has failed.
func (l lab) explainFailure() {
	if l.Failed() {
		e2e.Explain(l.T, l.Environment)
	}
}
