package nodespec

import "strings"

const (
	credentialProviderFile = Root + `\credential-provider-config.yaml`
	// ecrProvider is the program's name without the extension: the kubelet on Windows appends .exe. Source:
	// k8s.io/kubernetes, pkg/credentialprovider/plugin/plugin.go, which calls exec.LookPath.
	ecrProvider = "ecr-credential-provider"
)

// credentialProviderArguments returns the flags that make the kubelet get Amazon's registry passwords through the
// instance's role.
func credentialProviderArguments(p *programs) []string {
	program := p.executablePath(ecrProvider + ".exe")
	folder := program[:max(0, strings.LastIndexByte(program, '\\'))]
	return []string{"--image-credential-provider-config=" + credentialProviderFile,
		"--image-credential-provider-bin-dir=" + folder}
}

// credentialProviderFiles returns the credential provider configuration on AWS. The machine config operator's file
// for Linux nodes has the same image patterns, so both kinds of nodes use the role for the same registries. The
// patterns do not include *.dkr-ecr.*.on.aws.
func credentialProviderFiles(in Inputs) []File {
	if in.Cluster.Platform != platformAWS {
		return nil
	}
	return []File{newInheritedFile(credentialProviderFile, encodeJSON(object{
		"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig",
		"providers": []object{{
			"name": ecrProvider, "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
			"defaultCacheDuration": "12h",
			"matchImages": []string{
				"*.dkr.ecr.*.amazonaws.com",
				"*.dkr.ecr.*.amazonaws.com.cn",
				"*.dkr.ecr-fips.*.amazonaws.com",
				"*.dkr.ecr.us-iso-east-1.c2s.ic.gov",
				"*.dkr.ecr.us-isob-east-1.sc2s.sgov.gov",
			},
		}},
	}))}
}
