package boot

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/grpclog"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/windows-machine-config/wmco/lab/controlplane/internal/pki"
)

// runAPIServer serves until an error occurs or ctx is done.
func runAPIServer(ctx context.Context, c *Config, creds *Credentials) error {
	// The API server closes unused connections to etcd, hundreds during a start, and gRPC logs a warning for
	// each.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, os.Stderr))
	o := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	args, err := apiServerArgs(c, creds)
	if err != nil {
		return err
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	// Components share one registry of feature gates, which is set here once.
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	o.SecureServing.Listener, o.SecureServing.BindPort = join(c.Listener, c.Inherited), c.Port()
	o.SecureServing.ExternalAddress = c.Listener.Addr().(*net.TCPAddr).IP
	completed, err := o.Complete(ctx)
	if err != nil {
		return err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return utilerrors.NewAggregate(errs)
	}
	return app.Run(ctx, completed)
}

func apiServerArgs(c *Config, creds *Credentials) ([]string, error) {
	address := c.Listener.Addr().(*net.TCPAddr).IP
	args := []string{
		flag("etcd-servers", etcdSocket),
		flag("advertise-address", address),
		flag("service-cluster-ip-range", ServiceNetwork),
		flag("allow-privileged", true),
		flag("profiling", false),

		flag("tls-cert-file", creds.serving.CertFile),
		flag("tls-private-key-file", creds.serving.KeyFile),
		flag("client-ca-file", creds.ClientBundleFile),
		flag("requestheader-client-ca-file", creds.FrontProxy.CertFile),
		flag("requestheader-allowed-names", "system:openshift-aggregator"),
		flag("requestheader-username-headers", "X-Remote-User"),
		flag("requestheader-group-headers", "X-Remote-Group"),
		flag("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
		flag("proxy-client-cert-file", creds.proxyClient.CertFile),
		flag("proxy-client-key-file", creds.proxyClient.KeyFile),

		flag("service-account-issuer", "https://kubernetes.default.svc"),
		flag("service-account-key-file", creds.ServiceAccountKeyFile),
		flag("service-account-signing-key-file", creds.ServiceAccountKeyFile),

		flag("authorization-mode", "Node,RBAC"),
		flag("enable-admission-plugins", strings.Join(append([]string{"NodeRestriction"}, c.AdmissionPlugins...), ",")),

		flag("kubelet-client-certificate", creds.kubeletClient.CertFile),
		flag("kubelet-client-key", creds.kubeletClient.KeyFile),
		flag("kubelet-certificate-authority", creds.CSRSigner.CertFile),
		flag("kubelet-preferred-address-types", "InternalIP,Hostname"),
	}
	if address.IsLoopback() {
		// A loopback address is not allowed in Endpoints, so the Service kubernetes has none.
		args = append(args, flag("endpoint-reconciler-type", "none"))
	}
	return appendAudit(args, c)
}

// auditPolicy records user, verb and object once for each request, without contents.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
omitManagedFields: true
rules:
- level: Metadata
`

func appendAudit(args []string, c *Config) ([]string, error) {
	if c.AuditLog == "" {
		return args, nil
	}
	policy := c.path("audit-policy.yaml")
	if err := pki.WriteFile(policy, []byte(auditPolicy)); err != nil {
		return nil, fmt.Errorf("write the audit policy: %w", err)
	}
	return append(args, flag("audit-policy-file", policy), flag("audit-log-path", c.AuditLog)), nil
}
