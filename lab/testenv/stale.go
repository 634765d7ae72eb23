package testenv

import (
	"time"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/faultproxy"
)

// Proxy runs a proxy in front of the API server, which ends with the environment. An operator with the adjustment
// accesses the cluster through the proxy.
func (r *Environment) Proxy() (*faultproxy.Proxy, func(*operator.Config), error) {
	proxy, err := faultproxy.Start(r.Config)
	if err != nil {
		return nil, nil, err
	}
	r.onClose(proxy.Close)
	return proxy, func(c *operator.Config) { c.RESTConfig = proxy.Through(c.RESTConfig) }, nil
}

// StaleWatches runs a proxy that delays watch events; all other requests pass at once. The caches of an operator with
// the adjustment are stale by the delay.
func (r *Environment) StaleWatches(delay time.Duration) (adjust func(*operator.Config), err error) {
	proxy, adjust, err := r.Proxy()
	if err == nil {
		proxy.Add("", faultproxy.Fault{Delay: delay})
	}
	return adjust, err
}
