package test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

type (
	metav1Condition = metav1.Condition
	reader          = client.Reader
)

// formatJournal returns the interactions between operator and host, one per line.
func formatJournal(journal *fake.Journal) string {
	var b strings.Builder
	for _, e := range journal.Entries(nil) {
		switch e.Kind {
		case fake.KindConnection, fake.KindExec, fake.KindSFTP, fake.KindReboot, fake.KindPower, winhost.KindCommand,
			winhost.KindLogin, winhost.KindSSHD:
			fmt.Fprintf(&b, "\n%s %s %s", e.Time.Format("05.000"), e.Kind, e.Detail)
		}
	}
	return b.String()
}

// setAnnotation sets one annotation, as kubectl annotate does.
func setAnnotation(t *testing.T, r *testenv.Environment, object client.Object, name, value string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"`+name+`":"`+value+`"}}}`))
	if err := r.Client.Patch(t.Context(), object, patch); err != nil {
		t.Fatal(err)
	}
}

// waitForSummary waits until the instance of an address has the summary.
func waitForSummary(t *testing.T, r *testenv.Environment, address, summary string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err := r.WaitFor(ctx, address+" to say "+summary, &v1alpha1.WindowsInstance{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			var list v1alpha1.WindowsInstanceList
			if err := reader.List(ctx, &list); err != nil {
				return false, err
			}
			for _, instance := range list.Items {
				if instance.Spec.Address == address && instance.Status.Summary == summary {
					return true, nil
				}
			}
			return false, nil
		})
	if err != nil {
		t.Log(err)
	}
	return err == nil
}
