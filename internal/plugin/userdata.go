package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

// platforms lists the platforms with their own form of the script, and platforms with the common form.
var platforms = []configv1.PlatformType{configv1.AWSPlatformType, configv1.AzurePlatformType, configv1.GCPPlatformType,
	configv1.VSpherePlatformType, configv1.NutanixPlatformType, configv1.NonePlatformType}

// newUserDataCommand returns the command that shows the startup script of new Machines.
func newUserDataCommand(a *cmdutil.Access) *cobra.Command {
	platform := ""
	c := &cobra.Command{
		Use:   "userdata",
		Short: "Show the script that new Windows Machines run",
		Long: `Show the user data in the Secret ` + userdata.SecretName + ` of namespace ` + v1alpha1.MachineNamespace + `. The Secret
contains the public key and no secret. With --platform, show the script for another platform, with the same key.`,
		Example: `  kubectl windows userdata

  # For a virtual machine created by hand
  kubectl windows userdata --platform=None`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return showUserData(cmd.Context(), a, platform) },
	}
	c.Flags().StringVar(&platform, "platform", "", "platform of the machines. One of: "+platformNames())
	if err := c.RegisterFlagCompletionFunc("platform",
		cobra.FixedCompletions(strings.Split(platformNames(), ", "), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // unknown flag
	}
	return c
}

func platformNames() string {
	var list []string
	for _, platform := range platforms {
		list = append(list, string(platform))
	}
	return strings.Join(list, ", ")
}

func showUserData(ctx context.Context, a *cmdutil.Access, platform string) error {
	if platform != "" && !slices.Contains(platforms, configv1.PlatformType(platform)) {
		return fmt.Errorf("invalid --platform %q: use one of %s", platform, platformNames())
	}
	reader, err := a.Client()
	if err != nil {
		return err
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: userdata.SecretName}
	err = reader.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the Secret %s does not exist: the operator creates it if the private key and the Machine API exist", key)
	}
	if err != nil {
		return fmt.Errorf("read Secret %s: %w", key, err)
	}
	script := secret.Data[userdata.SecretKey]
	if platform != "" {
		if script, err = scriptForPlatform(script, platform); err != nil {
			return fmt.Errorf("the user data in Secret %s: %w", key, err)
		}
	}
	_, err = a.Out.Write(script)
	return err
}

// scriptForPlatform generates the script of another platform, with the same key.
func scriptForPlatform(script []byte, platform string) ([]byte, error) {
	settings, err := userdata.ParseHeader(script)
	if err != nil {
		return nil, err
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(settings.PublicKey))
	if err != nil {
		return nil, fmt.Errorf("its public key: %w", err)
	}
	return userdata.Generate(platform, key)
}
