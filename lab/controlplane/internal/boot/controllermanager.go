package boot

import (
	"context"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
)

// runControllerManager runs until an error occurs or ctx is done. The API server must be running.
func runControllerManager(ctx context.Context, c *Config, creds *Credentials) error {
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return err
	}
	all, disabled, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	sets := o.Flags(all, disabled, aliases)
	flags := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	kubeconfig, err := c.writeKubeconfig(creds, "kube-controller-manager", creds.controllerManager)
	if err != nil {
		return err
	}
	if err := flags.Parse(controllerManagerArgs(c, creds, kubeconfig)); err != nil {
		return err
	}
	o.ParsedFlags = &sets
	config, err := o.Config(ctx, all, disabled, aliases)
	if err != nil {
		return err
	}
	return app.Run(ctx, config.Complete())
}

func controllerManagerArgs(c *Config, creds *Credentials, kubeconfig string) []string {
	args := []string{
		flag("kubeconfig", kubeconfig),
		flag("controllers", controllers(c)),
		flag("use-service-account-credentials", true),
		flag("leader-elect", false),
		flag("secure-port", 0),
		flag("kube-api-qps", 2000),
		flag("kube-api-burst", 2000),

		flag("root-ca-file", creds.Server.CertFile),
		flag("service-account-private-key-file", creds.ServiceAccountKeyFile),
		flag("cluster-signing-cert-file", creds.CSRSigner.CertFile),
		flag("cluster-signing-key-file", creds.CSRSigner.KeyFile),
		flag("cluster-signing-duration", "720h"),
		flag("service-cluster-ip-range", ServiceNetwork),
		flag("allocate-node-cidrs", false),
	}
	if c.NodeGracePeriod > 0 {
		args = append(args, flag("node-monitor-grace-period", c.NodeGracePeriod.String()))
	}
	if c.ExternalCloudProvider {
		args = append(args, flag("cloud-provider", "external"))
	}
	return args
}

// controllers returns the list of enabled controllers, without controllers that other clients replace.
func controllers(c *Config) string {
	list := "*"
	if !c.AutoApproveRenewals {
		list += ",-" + names.CertificateSigningRequestApprovingController
	}
	if c.ExternalSigner {
		list += ",-" + names.CertificateSigningRequestSigningController
	}
	return list
}
