package boot

import (
	"context"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// runScheduler runs until an error occurs or ctx is done. The API server must be running.
func runScheduler(ctx context.Context, c *Config, creds *Credentials) error {
	o := options.NewOptions()
	flags := pflag.NewFlagSet("kube-scheduler", pflag.ContinueOnError)
	for _, set := range o.Flags.FlagSets {
		flags.AddFlagSet(set)
	}
	kubeconfig, err := c.writeKubeconfig(creds, "kube-scheduler", creds.scheduler)
	if err != nil {
		return err
	}
	err = flags.Parse([]string{
		flag("kubeconfig", kubeconfig),
		flag("leader-elect", false),
		flag("secure-port", 0),
		flag("kube-api-qps", 2000),
		flag("kube-api-burst", 2000),
	})
	if err != nil {
		return err
	}
	config, scheduler, err := app.Setup(ctx, o)
	if err != nil {
		return err
	}
	return app.Run(ctx, config, scheduler)
}
