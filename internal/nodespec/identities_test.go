package nodespec

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
)

//
func TestIdentities(t *testing.T) {
	in := azureInputs()
	spec := mustMake(t, in)
	table := IdentityTable()
	t.Run("who speaks with the API server stands in the table, and nobody else does", func(t *testing.T) {
		for _, service := range spec.Services {
			// The agent reads its files anew whenever it reports.
			client := slices.Contains(service.RestartOn, apiServerCAFile) || service.Name == spec.Reporting.Identity
			if inTable := slices.ContainsFunc(table, func(i ServiceIdentity) bool { return i.Service == service.Name }); client != inTable {
				t.Errorf("%s reads a client's files: %v; stands in the table: %v", service.Name, client, inTable)
			}
		}
	})
	t.Run("every kubeconfig leads to the internal API server by a certificate that rotates", func(t *testing.T) {
		for path, service := range map[string]string{kubeconfigFile: ServiceKubelet, cloudNodeManagerKubeconfig: ServiceCloudNodeManager} {
			config, err := clientcmd.Load([]byte(fileAt(t, spec, path).Content))
			if err != nil {
				t.Fatal(err)
			}
			context := config.Contexts[config.CurrentContext]
			user := config.AuthInfos[context.AuthInfo]
			want := identity(in, service).Path(CurrentCertificate)
			if config.Clusters[context.Cluster].Server != "https://api-int.lab.example.com:6443" || user.ClientCertificate != want || user.ClientKey != want || user.Token != "" {
				t.Errorf("%s: %+v", path, user)
			}
		}
	})
	t.Run("cloud-node-manager has its own certificate and waits for it", func(t *testing.T) {
		want := Identity{
			Name: "cloud-node-manager", Directory: `C:\k\cloud-node-manager\pki`,
			CommonName: "system:cloud-node-manager:winworker-x2k4f", Organization: "system:cloud-node-managers",
		}
		if !slices.Contains(spec.Identities, want) {
			t.Errorf("%+v", spec.Identities)
		}
		i := slices.IndexFunc(spec.Services, func(s Service) bool { return s.Name == "cloud-node-manager" })
		if needs := spec.Services[i].Needs; !slices.Equal(needs, []Need{NeedCertificateOf("cloud-node-manager")}) {
			t.Errorf("it needs %v", needs)
		}
	})
	t.Run("the agent has its own certificate on every platform, for a short time, and nobody waits for it", func(t *testing.T) {
		for _, platform := range []string{"None", "BareMetal", "VSphere", "Nutanix", "AWS", "Azure", "GCP"} {
			spec := mustMake(t, platformInputs(platform))
			i := slices.IndexFunc(spec.Identities, func(identity Identity) bool { return identity.Name == ServiceAgent })
			if i < 0 {
				t.Fatalf("%s: %+v", platform, spec.Identities)
			}
			agent, need := spec.Identities[i], NeedCertificateOf(ServiceAgent)
			if agent.CommonName != v1alpha1.AgentUserPrefix+"winworker-x2k4f" || agent.Organization != v1alpha1.AgentsGroup || agent.Life() != 48*time.Hour {
				t.Errorf("%s: %+v for %s", platform, agent, agent.Life())
			}
			for _, service := range spec.Services {
				if slices.Contains(service.Needs, need) {
					t.Errorf("%s: %s needs it", platform, service.Name)
				}
			}
			if spec.HoldsUp(need) || !spec.HoldsUp(NeedCertificate) || !spec.HoldsUp(NeedPodSubnet) {
				t.Errorf("%s: its certificate holds the node up, or nothing does", platform)
			}
		}
	})
	t.Run("the certificates of others are as long good as the signer likes", func(t *testing.T) {
		for _, identity := range spec.AllIdentities() {
			if identity.Name != ServiceAgent && identity.Life() != 0 {
				t.Errorf("%s for %s", identity.CommonName, identity.Life())
			}
		}
	})
	t.Run("keys lie where only SYSTEM and administrators look", func(t *testing.T) {
		for _, line := range table {
			if !slices.Contains(spec.Directories, Directory{line.Directory, host.AccessAdministrators}) {
				t.Errorf("%s is open to others", line.Directory)
			}
		}
	})
	t.Run("each line says its rights", func(t *testing.T) {
		for _, line := range table {
			if line.Rights == "" || !strings.HasSuffix(line.User, ":"+nodePlaceholder) || line.Group == "" {
				t.Errorf("%+v", line)
			}
		}
	})
}
