package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/process"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// scriptedClient is a fake API server that responds to the n-th List with answer(n).
type scriptedClient struct {
	client.WithWatch
	requests int
	errorFor func(n int) error
}

func (a *scriptedClient) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	a.requests++
	if err := a.errorFor(a.requests); err != nil {
		return err
	}
	instance := v1alpha1.WindowsInstance{}
	instance.Name = "a"
	list.(*v1alpha1.WindowsInstanceList).Items = []v1alpha1.WindowsInstance{instance} //nolint:forcetypeassert // no Machines are wanted
	return nil
}

// newWatchDemo returns a demo that reads its hosts from the fake API server, and the output. end ends the control
// plane of the demo.
func newWatchDemo(answer func(n int) error) (d *demo, output *bytes.Buffer, end func()) {
	output = &bytes.Buffer{}
	controlPlane := make(chan struct{})
	return &demo{demoOptions: &demoOptions{}, output: newOutput(output), hostBoard: &hostBoard{}, controlPlane: controlPlane,
		env: &testenv.Environment{Client: &scriptedClient{errorFor: answer}}, operator: &testenv.OperatorProcess{Process: &process.Process{}}}, output, func() { close(controlPlane) }
}

func TestPollHosts_FailedListDoesNotEndDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polls := 0
		d, output, _ := newWatchDemo(func(n int) error {
			if polls = n; n == 4 || n >= 7 {
				return nil
			}
			return errors.New("etcdserver: request timed out")
		})
		if err := d.pollHosts(t.Context(), nil, func() bool { return polls == 8 }); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(output.String(), "list the instances: etcdserver: request timed out"); n != 2 || !strings.Contains(output.String(), "a (") {
			t.Errorf("two failures, with a success between them, are printed %d times:\n%s", n, output)
		}
	})
}

func TestPollHosts_EndedControlPlaneEndsDemo(t *testing.T) {
	refused := errors.New("connection refused")
	t.Run("when it ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var end func()
			d, _, end := newWatchDemo(func(n int) error {
				if n == 3 {
					end()
				}
				return refused
			})
			if err := d.pollHosts(t.Context(), nil, func() bool { return true }); err == nil || err.Error() != "the control plane has ended" {
				t.Errorf("the demo ends with %v", err)
			}
		})
	})
	t.Run("but one that is asked to end ends with that", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			d, output, end := newWatchDemo(func(int) error { return refused })
			cancel()
			end()
			if err := d.pollHosts(ctx, nil, func() bool { return true }); !errors.Is(err, context.Canceled) || output.Len() > 0 {
				t.Errorf("the demo ends with %v, and prints %s", err, output)
			}
		})
	})
}
