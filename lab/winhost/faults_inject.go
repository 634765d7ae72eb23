package winhost

import (
	"cmp"

	"golang.org/x/crypto/ssh"
)

// injectQuietly injects faults without an additional effect.
func (h *Host) injectQuietly(active *activeFault) (undo func(), err error) {
	h.faults.addFault(active)
	return func() {}, nil
}

// injectCut also cuts the existing connections, so that the next contact meets the fault.
func (h *Host) injectCut(active *activeFault) (undo func(), err error) {
	h.faults.addFault(active)
	h.CutConnections()
	return func() {}, nil
}

func (h *Host) injectRefusal(active *activeFault) (undo func(), err error) {
	h.faults.addFault(active)
	h.mu.Lock()
	h.closeListener()
	h.mu.Unlock()
	h.CutConnections()
	return h.resumeListening, nil
}

func (h *Host) injectSlowLink(active *activeFault) (undo func(), err error) {
	h.slow.Set(LinkProperties{RoundTrip: active.parameters.Latency, BytesPerSecond: active.parameters.BytesPerSecond})
	h.faults.addFault(active)
	h.CutConnections()
	return func() { h.slow.Set(LinkProperties{}) }, nil
}

func (h *Host) injectHostKey(active *activeFault) (undo func(), err error) {
	key, err := newHostKey(h.options.Rand)
	if err != nil {
		return nil, err
	}
	if active.hostKey, err = ssh.NewSignerFromKey(key); err != nil {
		return nil, err
	}
	h.faults.addFault(active)
	h.CutConnections()
	return h.CutConnections, nil
}

func (h *Host) injectDiskFull(active *activeFault) (undo func(), err error) {
	h.faults.addFault(active)
	return h.machine.FillDisk(active.parameters.Bytes), nil
}

func (h *Host) injectLinger(active *activeFault) (undo func(), err error) {
	h.faults.addFault(active)
	return h.machine.DelayShutdown(active.parameters.Duration), nil
}

func (h *Host) injectServiceFailure(active *activeFault) (undo func(), err error) {
	h.faults.addFault(active)
	return h.machine.FailServiceStart(active.parameters.Service, cmp.Or(active.parameters.ExitCode, 1)), nil
}
