package rig

import (
	"time"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/apiproxy"
)

// Proxy runs a proxy in front of the API server, which ends with the rig. An operator with the adjustment accesses
// the cluster through the proxy.
func (r *Rig) Proxy() (*apiproxy.Proxy, func(*operator.Config), error) {
	proxy, err := apiproxy.Start(r.Config)
	if err != nil {
		return nil, nil, err
	}
	r.onClose(proxy.Close)
	return proxy, func(c *operator.Config) { c.RESTConfig = proxy.Through(c.RESTConfig) }, nil
}

// StaleWatches runs a proxy that delays watch events; all other requests pass at once. The caches of an operator with
// the adjustment are stale by the delay.
func (r *Rig) StaleWatches(delay time.Duration) (adjust func(*operator.Config), err error) {
	proxy, adjust, err := r.Proxy()
	if err == nil {
		proxy.Add("", apiproxy.Fault{Delay: delay})
	}
	return adjust, err
}
