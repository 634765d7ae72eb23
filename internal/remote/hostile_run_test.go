package remote_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// fitForStatus checks that a host error is short and printable, so that it neither fills a status nor controls a
// terminal.
func fitForStatus(t *testing.T, err error) {
	t.Helper()
	if text := err.Error(); len(text) > 2500 || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsPrint(r) || r == utf8.RuneError
	}) {
		t.Errorf("the error is not fit for a status: %d bytes, %.300q", len(text), text)
	}
}

// unhurried are limits under which hosts are stopped by the size of their output, even on a busy machine.
var unhurried = remote.Limits{HelloTimeout: 10 * time.Minute, SilenceTimeout: 10 * time.Minute}

// writeForever writes the same text repeatedly until the reader stops.
func (p *process) writeForever(what string) {
	for {
		if _, err := io.WriteString(p.out, what); err != nil {
			return
		}
	}
}

func jsonMembers(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `"%06d":"",`, i)
	}
	return strings.TrimSuffix(text.String(), ",")
}

// A compromised host may send any output. Each kind of output is limited, is reported, and affects only this host.
func TestRun_HostileOutputBounded(t *testing.T) {
	longStep := agentapi.Line{Type: agentapi.TypeStep, Step: &agentapi.Step{Name: strings.Repeat("s", 1<<20),
		State: agentapi.StepProgress}}
	for name, c := range map[string]struct {
		agent  func(p *process) int
		reason remote.Reason
		texts  []string
	}{
		"garbage": {func(p *process) int {
			_, _ = io.WriteString(p.out, strings.Repeat("\x00\xff\x1b]0;owned\x07\u202e", 10_000)+"\n")
			_, _ = io.WriteString(p.err, strings.Repeat("\x9b31m\r\n", 10_000))
			return 0
		}, remote.ReasonAgentStartFailed, []string{"exit code 0"}},
		"an end without a result": {func(p *process) int {
			p.writeLines(helloLine())
			return 0
		}, remote.ReasonAgentExited, []string{"without a result"}},
		"steps without an end": {func(p *process) int {
			data, _ := longStep.Encode()
			p.writeLines(helloLine())
			p.writeForever(string(data) + "\n")
			return 0
		}, remote.ReasonAgentExited, []string{"longer than 64 MiB"}},
		"noise without an end": {func(p *process) int {
			p.writeForever(strings.Repeat("noise ", 10_000) + "\n")
			return 0
		}, remote.ReasonAgentExited, []string{"longer than 64 MiB"}},
		"a line without an end": {func(p *process) int {
			p.writeForever(strings.Repeat(`{"wicd":`, 10_000))
			return 0
		}, remote.ReasonAgentExited, []string{"longer than 2 MiB"}},
		"facts with tens of thousands of entries": {func(p *process) int {
			p.writeLines(helloLine())
			_, _ = io.WriteString(p.out, `{"wicd":"v1","type":"result","result":{"facts":{"payload":{`+jsonMembers(21_000)+"}}}}\n")
			return 0
		}, remote.ReasonAgentExited, []string{"more than 20000 values"}},
		"a list of empty objects, which are small only on the wire": {func(p *process) int {
			p.writeLines(helloLine())
			_, _ = io.WriteString(p.out, `{"wicd":"v1","type":"result","result":{"facts":{"processes":[`+strings.Repeat("{},",
				300_000)+"{}]}}}\n")
			return 0
		}, remote.ReasonAgentExited, []string{"more than 20000 values"}},
		"objects in objects": {func(p *process) int {
			p.writeLines(helloLine())
			_, _ = io.WriteString(p.out, `{"wicd":"v1","type":"result","result":`+strings.Repeat(`{"a":`, 15_000)+"1"+
				strings.Repeat("}", 15_001)+"\n")
			return 0
		}, remote.ReasonAgentExited, []string{"without a result"}},
		"a failure with control characters, and what is no text": {func(p *process) int {
			p.writeLines(helloLine())
			_, _ = io.WriteString(p.out,
				`{"wicd":"v1","type":"failure","failure":{"reason":"StepFailed","message":"a\u001b[2J\u0000\u202e`+"\xff\xfe"+`b`+strings.Repeat("c", 1<<20)+`"}}`+"\n")
			return 1
		}, remote.Reason(agentapi.ReasonStepFailed), []string{"a[2J"}},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			key := newKey(t)
			s := newServer(t, key)
			s.agent = c.agent
			s.disk.writeFile("C:/k/wicd/0123456789ab/wicd.exe", "MZ")
			_, _, err := run(t, s.mustConnect(&remote.Dialer{Limits: unhurried}, key))
			expectError(t, err, c.reason, c.texts...)
			fitForStatus(t, err)
		})
	}
}

//
func TestRun_SlowOutputTimesOut(t *testing.T) {
	prepare := func(t *testing.T, each func(p *process)) (*remote.Connection, *testClock, chan struct{}) {
		noLeaks(t)
		key := newKey(t)
		s := newServer(t, key)
		drops := make(chan struct{})
		s.agent = func(p *process) int {
			for {
				select {
				case <-p.closed:
					return 0
				case <-drops:
					each(p)
				}
			}
		}
		d, clock := fakeDialer()
		return s.mustConnect(d, key), clock, drops
	}
	t.Run("byte by byte", func(t *testing.T) {
		c, clock, drops := prepare(t, func(p *process) { _, _ = io.WriteString(p.out, "x") })
		wait := inBackground(func() error {
			_, err := c.Run(t.Context(), agentPath, agentapi.Facts, nil, nil)
			return err
		})
		clock.awaitTimer(helloTimeout)
		for range int(helloTimeout / time.Second) {
			drops <- struct{}{}
			clock.Step(time.Second)
		}
		expectTimeout(t, wait(), remote.ReasonAgentTimedOut, "the first line of agent command facts")
	})
	t.Run("line by line, each of which is a sign of life", func(t *testing.T) {
		c, clock, drops := prepare(t, func(p *process) { p.writeLines(stepLine("a")) })
		lines := make(chan struct{})
		wait := inBackground(func() error {
			_, err := c.Run(t.Context(), agentPath, agentapi.Facts, nil, func(agentapi.Line) { lines <- struct{}{} })
			return err
		})
		clock.awaitTimer(helloTimeout)
		for passed := time.Duration(0); passed <= remote.DefaultCommandTimeout; passed += silenceTimeout - time.Minute {
			drops <- struct{}{}
			<-lines
			clock.Step(silenceTimeout - time.Minute)
		}
		drops <- struct{}{}
		err := wait()
		expectError(t, err, remote.ReasonAgentExited, "running time exceeded 2h", "the next run resumes")
		if c.Err() != nil {
			t.Errorf("the connection is gone with it: %v", c.Err())
		}
	})
	t.Run("but whose result comes at last, which counts", func(t *testing.T) {
		ends := make(chan struct{})
		c, clock, drops := prepare(t, func(p *process) {
			select {
			case <-ends:
				p.writeLines(resultLine())
			default:
				p.writeLines(stepLine("a"))
			}
		})
		lines := make(chan struct{}, 1)
		wait := inBackground(func() error {
			_, err := c.Run(t.Context(), agentPath, agentapi.Facts, nil, func(agentapi.Line) { lines <- struct{}{} })
			return err
		})
		clock.awaitTimer(helloTimeout)
		for passed := time.Duration(0); passed <= remote.DefaultCommandTimeout; passed += silenceTimeout - time.Minute {
			drops <- struct{}{}
			<-lines
			clock.Step(silenceTimeout - time.Minute)
		}
		close(ends)
		drops <- struct{}{}
		clock.passTimer(endTimeout) // the agent continues to run
		if err := wait(); err != nil {
			t.Error(err)
		}
	})
}

// a hostile host must not affect other hosts.
func TestRun_HostileHostBlocksNoOtherHost(t *testing.T) {
	noLeaks(t)
	key := newKey(t)
	hostile, honest := newServer(t, key), newServer(t, key)
	hostile.agent = func(p *process) int {
		p.writeForever(strings.Repeat("noise ", 10_000) + "\n")
		return 0
	}
	honest.agent = func(p *process) int {
		p.writeLines(helloLine(), resultLine())
		return 0
	}
	pool := remote.NewPool(&remote.Dialer{Limits: unhurried})
	t.Cleanup(pool.CloseAll)
	work := func(s *server, instance string) error {
		target := s.newTarget(key)
		target.Instance = instance
		c, err := pool.Get(t.Context(), target)
		if err != nil {
			return err
		}
		defer pool.Release(c)
		_, err = c.Run(t.Context(), agentPath, agentapi.Facts, nil, nil)
		return err
	}
	var waits []func() error
	for i := range 4 {
		waits = append(waits, inBackground(func() error { return work(hostile, fmt.Sprintf("hostile-%d", i)) }))
	}
	for i := range 10 {
		if err := work(honest, fmt.Sprintf("honest-%d", i)); err != nil {
			t.Error(err)
		}
	}
	var stopped *remote.Error
	for _, wait := range waits {
		if err := wait(); !errors.As(err, &stopped) || stopped.Reason != remote.ReasonAgentExited {
			t.Error(err)
		}
	}
}
