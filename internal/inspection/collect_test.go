package inspection

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/inspection/hostsession"
	"github.com/windows-machine-config/wmco/internal/podexec"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

func TestCollectHost_TimeoutNamesStage(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := sshkey.Parse(pem.EncodeToMemory(block))
	if err != nil {
		t.Fatal(err)
	}
	i := &inspector{connector: hostsession.Connector{Rand: strings.NewReader("1234"), Dialer: &remote.Dialer{
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}}}
	instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Name: "win-1"},
		Spec: v1alpha1.WindowsInstanceSpec{Address: "10.0.0.9", DesiredState: v1alpha1.DesiredStateNode}}
	report := hostCollector{inspector: i, key: key, timeout: time.Millisecond}.collectHost(t.Context(), instance, podexec.CollectedHost{Name: "win-1"})
	const want = "host 10.0.0.9: timed out after 1ms during its login; for more time, use --host-timeout=2ms"
	if report.Error != want {
		t.Errorf("it says %q, want %q", report.Error, want)
	}
	if report.Plan != "win-1 (10.0.0.9): not known\n  "+want+"\n" {
		t.Errorf("its plan is %q", report.Plan)
	}
}

func TestStages_FailureNotReportedAsTimeout(t *testing.T) {
	s := stages{"10.0.0.9", 2 * time.Minute, 20 * time.Second}
	if message := s.formatFailure("its login", errors.New("no route\x1b[2J")); !strings.HasPrefix(message, "no route") || strings.Contains(message, "\x1b") || strings.Contains(message, "--host-timeout") {
		t.Errorf("it says %q", message)
	}
	if said := s.formatFailure("the agent command collect", fmt.Errorf("read: %w", errHostTimeout)); said !=
		"host 10.0.0.9: timed out after 20s during the agent command collect; for more time, use --host-timeout=4m0s" {
		t.Errorf("it says %q", said)
	}
}

func TestLoginTimeout_FractionOfHostTimeout(t *testing.T) {
	for host, login := range map[time.Duration]time.Duration{
		10 * time.Second: 10 * time.Second, 20 * time.Second: 20 * time.Second, 2 * time.Minute: 20 * time.Second, 12 * time.Minute: 2 * time.Minute,
	} {
		if got := loginTimeout(host); got != login {
			t.Errorf("of %s its login has %s, want %s", host, got, login)
		}
	}
}

func TestPlanHost_TimeoutIsNotNoChanges(t *testing.T) {
	instance := &v1alpha1.WindowsInstance{Spec: v1alpha1.WindowsInstanceSpec{Address: "10.0.0.9", DesiredState: v1alpha1.DesiredStateNode}}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errHostTimeout)
	l := hostCollector{inspector: &inspector{}, timeout: time.Minute}
	if made := l.planHost(ctx, nil, instance); !strings.Contains(made.Error, "timed out after 1m0s during the agent's plan") {
		t.Errorf("it is %+v", made)
	}
	l.planErr = errors.New("the cluster's configuration cannot be used: it has no network")
	if forecast := l.planHost(t.Context(), nil, instance); forecast.Error != l.planErr.Error() {
		t.Errorf("it is %+v", forecast)
	}
	instance.Spec.DesiredState = v1alpha1.DesiredStateRemoved
	if forecast := l.planHost(t.Context(), nil, instance); forecast.Error != "" || !forecast.Removed {
		t.Errorf("a host that is given back needs no network: %+v", forecast)
	}
}
