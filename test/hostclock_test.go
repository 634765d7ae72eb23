package test

import (
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

func TestClockSkew_LargeSkewRejectedSmallSkewReported(t *testing.T) {
	hosts := testenv.Hosts(2)
	hosts[0].ClockOffset, hosts[1].ClockOffset = 365*24*time.Hour, 3*time.Minute
	r := newInstalledRig(t, testenv.Options{Hosts: hosts})
	run(t, r)
	list(t, r)
	yearAhead, littleAhead := r.Hosts()[0], r.Hosts()[1]

	refused := func(i *v1alpha1.WindowsInstance) bool {
		return i != nil && i.Status.Summary == v1alpha1.ReasonClockSkew
	}
	if err := r.WaitForInstance(t.Context(), yearAhead, "be refused for its clock", refused); err != nil {
		t.Fatal(err)
	}
	if err := r.WaitReady(t.Context(), littleAhead.Options.Name); err != nil {
		t.Fatal(err)
	}
	instance, err := r.Instance(t.Context(), yearAhead.Options.Name)
	if err != nil {
		t.Fatal(err)
	}
	supported := meta.FindStatusCondition(instance.Status.Conditions, v1alpha1.ConditionSupported)
	if supported.Status != metav1.ConditionFalse || !strings.Contains(supported.Message, "365 days ahead") {
		t.Errorf("Supported is %+v", supported)
	}
	var requests certificatesv1.CertificateSigningRequestList
	if err := r.Client.List(t.Context(), &requests); err != nil {
		t.Fatal(err)
	}
	for _, request := range requests.Items {
		if strings.Contains(request.Name, yearAhead.NodeName()) {
			t.Errorf("a certificate was asked for: %s", request.Name)
		}
	}
	if instance, err = r.Instance(t.Context(), littleAhead.Options.Name); err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(instance.Status.Conditions, v1alpha1.ConditionReady)
	if !strings.Contains(ready.Message, " But the host's clock shows ") || !strings.Contains(ready.Message, " ahead. Correct the clock") {
		t.Errorf("Ready is %+v", ready)
	}
}
