package agent_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestNodeConditionThatIsNotTaken(t *testing.T) {
	t.Parallel()
	away := func(context.Context) (int, error) { return 0, errors.New("connection refused") }
	t.Run("by an API server that is away is sent less and less often, and the host is repaired all the same", func(t *testing.T) {
		t.Parallel()
		r, n, _ := publishes(t)
		n.set(away)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.pass(timeouts.DriftPoll)
		if service, _ := r.Service("kube-proxy"); service.State != host.ServiceRunning {
			t.Error("kube-proxy does not run")
		}
		before, taken := n.counts()
		for begin := r.ticking.Now(); r.ticking.Since(begin) < 2*time.Hour; {
			r.passAnswered(timeouts.DriftCheck)
		}
		requests, patches := n.counts()
		if requests -= before; requests < 20 || requests > 60 || patches != taken {
			t.Errorf("%d requests within two hours, %d patches", requests, patches-taken)
		}
		if lines := strings.Count(r.log(), "connection refused"); lines != 1 {
			t.Errorf("the log has it %d times", lines)
		}
		n.set(nil)
		r.passUntil("the condition", func() bool { return strings.Contains(n.condition().Message, "StartService kube-proxy") })
		r.passUntil("the log", func() bool {
			return strings.Contains(r.log(), "accepts the Node's condition WindowsConfiguration again")
		})
	})
	t.Run("because the agent may not write it is sent seldom, and told once", func(t *testing.T) {
		t.Parallel()
		r, n, _ := publishes(t)
		n.set(func(context.Context) (int, error) { return http.StatusForbidden, nil })
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		before, _ := n.counts()
		for begin := r.ticking.Now(); r.ticking.Since(begin) < 2*time.Hour; {
			r.passAnswered(timeouts.DriftCheck)
		}
		if requests, _ := n.counts(); requests-before < 10 || requests-before > 26 {
			t.Errorf("%d requests within two hours", requests-before)
		}
		if lines := strings.Count(r.log(), "answers 403: the server is closed"); lines != 1 {
			t.Errorf("the log has it %d times: %s", lines, r.log())
		}
	})
	t.Run("because its Node is only just being made is sent again soon", func(t *testing.T) {
		t.Parallel()
		n := newNodeServer()
		n.set(func(context.Context) (int, error) { return http.StatusNotFound, nil })
		r := node(t, func(r *rig) { r.api, r.validity = n, 30*24*time.Hour })
		r.result(r.apply(withCondition(r.full())))
		r.passUntil("an attempt", func() bool { requests, _ := n.counts(); return requests == 1 })
		n.set(nil)
		begin := r.ticking.Now()
		r.passUntil("the condition", func() bool { return n.condition().Status == corev1.ConditionTrue })
		if waited := r.ticking.Since(begin); waited > 2*timeouts.DriftCheck {
			t.Errorf("that took %s", waited)
		}
	})
	t.Run("nor refused keeps nobody from repairing, nor the service from stopping", func(t *testing.T) {
		t.Parallel()
		r, n, _ := publishes(t)
		came := make(chan struct{}, 10)
		n.set(func(ctx context.Context) (int, error) { came <- struct{}{}; <-ctx.Done(); return 0, ctx.Err() })
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		for len(came) == 0 {
			r.pass(timeouts.DriftPoll)
		}
		r.must(r.Host().Services.Stop(r.ctx, "kubelet"))
		r.pass(timeouts.DriftCheck)
		if service, _ := r.Service("kubelet"); service.State != host.ServiceRunning {
			t.Error("the kubelet does not run")
		}
		r.must(r.Host().Services.Stop(r.ctx, nodespec.ServiceAgent))
		if service, _ := r.Service(nodespec.ServiceAgent); service.ExitCode != 0 {
			t.Errorf("exit code %d", service.ExitCode)
		}
	})
	t.Run("is not sent with a certificate that has expired, and the log says so once", func(t *testing.T) {
		t.Parallel()
		r, n, spec := publishes(t)
		before, _ := n.counts()
		r.pass(31 * 24 * time.Hour)
		for range 10 {
			r.passAnswered(timeouts.DriftCheck)
		}
		if after, _ := n.counts(); after > before+2 {
			t.Errorf("%d requests", after-before)
		}
		if lines := strings.Count(r.log(), "the certificate of "+spec.Identity.CommonName+" was valid until"); lines != 1 {
			t.Errorf("the log has it %d times: %s", lines, r.log())
		}
	})
}
