package agent_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestNodeReportThatIsNotTaken(t *testing.T) {
	t.Parallel()
	away := func(context.Context) (int, error) { return 0, errors.New("connection refused") }
	t.Run("by an API server that is away is sent less and less often, and the host is repaired all the same", func(t *testing.T) {
		t.Parallel()
		r, d, _ := reports(t)
		d.set(away)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.pass(agent.DriftPoll)
		if service, _ := r.Service("kube-proxy"); service.State != host.ServiceRunning {
			t.Error("kube-proxy does not run")
		}
		before, _ := d.counts()
		for begin := r.ticking.Now(); r.ticking.Since(begin) < 2*time.Hour; {
			r.passAnswered(agent.DriftCheck)
		}
		attempts, taken := d.counts()
		if attempts -= before; attempts < 12 || attempts > 32 || taken != 1 {
			t.Errorf("%d attempts within two hours, %d reports", attempts, taken)
		}
		if n := strings.Count(r.log(), "connection refused"); n != 1 {
			t.Errorf("the log has it %d times", n)
		}
		d.set(nil)
		r.passUntil("the report", func() bool { return len(d.last().Drift) == 1 })
		r.passUntil("the log", func() bool { return strings.Contains(r.log(), "has the report on this host again") })
	})
	t.Run("because the agent may not write it is sent seldom, and told once", func(t *testing.T) {
		t.Parallel()
		r, d, _ := reports(t)
		d.set(func(context.Context) (int, error) { return http.StatusForbidden, nil })
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		before, _ := d.counts()
		for begin := r.ticking.Now(); r.ticking.Since(begin) < 2*time.Hour; {
			r.passAnswered(agent.DriftCheck)
		}
		if attempts, _ := d.counts(); attempts-before < 5 || attempts-before > 15 {
			t.Errorf("%d attempts within two hours", attempts-before)
		}
		if n := strings.Count(r.log(), "answers 403: the desk is closed"); n != 1 {
			t.Errorf("the log has it %d times: %s", n, r.log())
		}
	})
	t.Run("because its object is only just being made is sent again soon", func(t *testing.T) {
		t.Parallel()
		r, d, spec, request := asks(t)
		d.set(func(context.Context) (int, error) { return http.StatusNotFound, nil })
		r.certify(spec, request)
		r.passUntil("an attempt", func() bool { attempts, _ := d.counts(); return attempts == 1 })
		d.set(nil)
		begin := r.ticking.Now()
		r.passUntil("the report", func() bool { _, taken := d.counts(); return taken == 1 })
		if waited := r.ticking.Since(begin); waited > 2*agent.DriftCheck {
			t.Errorf("that took %s", waited)
		}
	})
	t.Run("nor refused keeps nobody from repairing, nor the service from stopping", func(t *testing.T) {
		t.Parallel()
		r, d, _ := reports(t)
		came := make(chan struct{}, 10)
		d.set(func(ctx context.Context) (int, error) { came <- struct{}{}; <-ctx.Done(); return 0, ctx.Err() })
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		for len(came) == 0 {
			r.pass(agent.DriftPoll)
		}
		r.must(r.Host().Services.Stop(r.ctx, "kubelet"))
		r.pass(agent.DriftCheck)
		if service, _ := r.Service("kubelet"); service.State != host.ServiceRunning {
			t.Error("the kubelet does not run")
		}
		r.must(r.Host().Services.Stop(r.ctx, nodespec.ServiceAgent))
		if service, _ := r.Service(nodespec.ServiceAgent); service.ExitCode != 0 {
			t.Errorf("exit code %d", service.ExitCode)
		}
	})
}

func TestNodeReportWithoutACertificate(t *testing.T) {
	t.Parallel()
	t.Run("is not sent, and the node works", func(t *testing.T) {
		t.Parallel()
		r, d, spec, _ := asks(t)
		r.quiet(d)
		for _, wanted := range spec.Services {
			if service, _ := r.Service(wanted.Name); service.State != host.ServiceRunning {
				t.Errorf("service %s does not run", wanted.Name)
			}
		}
		if strings.Contains(r.log(), "report") {
			t.Errorf("the log speaks of it: %s", r.log())
		}
	})
	t.Run("that is good any more is not sent either, until there is another", func(t *testing.T) {
		t.Parallel()
		r, d, _ := reports(t)
		r.pass(49 * time.Hour)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.quiet(d)
		if n := strings.Count(r.log(), "the certificate of "+reporterIdentity.CommonName+" was good until"); n != 1 {
			t.Errorf("the log has it %d times: %s", n, r.log())
		}
		r.clock = ahead{by: 50 * time.Hour}
		line, _ := r.run("renew", "--identity", reporterIdentity.Name)
		certificate := r.sign(line.Result.Facts.Identities[reporterIdentity.Name].Request)
		r.result(r.run("renew", "--identity", reporterIdentity.Name, "--identity-certificate", reporterIdentity.Name+":"+word(certificate)))
		r.passUntil("a report", func() bool { return len(d.last().Drift) > 0 })
		attempts, _ := d.counts()
		if got := d.attempt(attempts - 1).Certificate.Certificate[0]; !strings.Contains(certificate, pemBody(got)) {
			t.Error("it was not sent with the new certificate")
		}
	})
	t.Run("does not keep a node from its way back", func(t *testing.T) {
		t.Parallel()
		r, _, former := reports(t)
		next := withReport(r.next())
		r.result(r.upgrade(next, former))
		r.clock = ahead{by: 49 * time.Hour}
		result, _ := r.result(r.run("rollback", "--digest", "sha256:"+former.Digest()))
		if result.Facts.Applied != former.Digest() || result.Facts.Fallback != "" || slices.Contains(result.Plan.Needs, nodespec.NeedCertificateOf(reporterIdentity.Name)) {
			t.Errorf("applied %s, fallback %s, needs %q", result.Facts.Applied, result.Facts.Fallback, result.Plan.Needs)
		}
	})
}
