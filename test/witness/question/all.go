package question

// All returns the questions. N1 to N13 are findings of a review of the code against Windows' sources and documents.
func All() []Question {
	return []Question{
		withChanges(newQuestion("N1", "What can be done with a log that is open for reading and for appending?",
			"A log can be emptied while a reader has it open, and its writer goes on at its beginning.",
			Reliance{"internal/host/windows/logs.go", "Rotate"}, judgeLog)),
		withChanges(newQuestion("N2", "How does HNS attach an endpoint to the machine, and what is its state then?",
			"An endpoint can be attached within 5 s; a second time is refused with 0x803b0014 at most; then its state is 2 or 3, or the machine has its adapter.",
			Reliance{"internal/host/windows/networks_attach.go", "listAttached"}, judgeAttachment)),
		newQuestion("N3", "May a session of the SSH server restart Windows?",
			"The session has SeShutdownPrivilege, so InitiateSystemShutdownEx works there; ExitWindowsEx may lack WINSTA_EXITWINDOWS.",
			Reliance{"internal/host/windows/power.go", "restartWindows"}, judgeRestart),
		newQuestion("N4", "Which adapter do overlay networks use, and what does HNS report of it?",
			"HNS reports the address of the adapter that an overlay network uses as ManagementIP; it is the node's if there is one adapter.",
			Reliance{"internal/plan/network.go", "ManagementIP"}, judgeChoice),
		newQuestion("N5", "Does a static address stay when HNS makes the pods' network?",
			"A static address stays with DeviceLessNicDisabled 1 that was set before hns started, and on Windows Server 2022.",
			Reliance{"internal/plan/staticaddress.go", "keepStaticAddress"}, judgeStaticAddress),
		newQuestion("N6", "Do local firewall rules count under the group policies of this machine?",
			"AllowLocalPolicyMerge 0 in a profile excludes the machine's own rules there.",
			Reliance{"internal/host/windows/firewall_policy_windows.go", "AllowLocalPolicyMerge"}, judgeFirewall),
		newQuestion("N7", "Does HNS list the policy HostRoute of an overlay network?",
			"HNS lists HostRoute among the policies of an overlay network that has it.",
			Reliance{"internal/host/windows/networks_choice.go", "lacksHostRoute"}, judgeHostRoute),
		withChanges(newQuestion("N8", "What does OpenSSH's SFTP server make of links?",
			"SFTP shows a junction as a folder and a symbolic link as a link; the deletion of a folder deletes a junction without its target.",
			Reliance{"internal/remote/remove.go", "junction"}, judgeLinks)),
		newQuestion("N9", "Are the host keys of sshd the machine's own?",
			"The host keys are younger than the installation of Windows: no image has brought them.",
			Reliance{"internal/policy/nodeidentity/hostkey.go", "ssh_host_"}, judgeHostKeys),
		newQuestion("N10", "Which features does container networking need, and can they be enabled?",
			"From 26100 on, hns and vfpext come with the features Containers-HNS and Containers-SDN, before with Containers.",
			Reliance{"internal/nodespec/paths.go", "Containers-HNS"}, judgeFeatures),
		newQuestion("N11", "Does the adapter of kube-proxy's endpoint register in DNS?",
			"An adapter does not register its address with RegistrationEnabled 0.",
			Reliance{"internal/plan/registration.go", "RegistrationEnabled"}, judgeRegistration),
		withChanges(newQuestion("N12", "How long does a scanner keep a new program from being renamed over SFTP?",
			"A new program can be renamed 2 s after it was written at the latest.",
			Reliance{"internal/remote/upload.go", "Rename"}, judgeUpload)),
		newQuestion("N13", "How long does HNS take to list its endpoints?",
			"All endpoints of a node are listed within 5 s: the agent does so each minute.",
			Reliance{"internal/agent/timeouts/limits.go", "DriftCheckInterval"}, judgeListing),
		newQuestion("A1", "Which service does a session of the SSH server descend from?",
			"The parents of a session's process lead to the service sshd.",
			Reliance{"internal/plan/login.go", "FindLogin"}, judgeLogin),
		newQuestion("A2", "Can the Host Networking Service be started?",
			"hns is there with its feature, may be stopped, and is not disabled.",
			Reliance{"internal/plan/networking.go", "wakeNetworking"}, judgeService),
		newQuestion("A3", "Which packet size does the adapter of the pods' network have?",
			"The virtual adapter has the packet size of the one whose place it takes.",
			Reliance{"internal/nodespec/cni.go", "encapOverhead"}, judgePacketSize),
		newQuestion("A4", `Who may write to C:\ProgramData\ssh?`,
			`Only administrators and Windows itself may write to C:\ProgramData\ssh, where the agent lands.`,
			Reliance{"internal/nodespec/paths.go", "LandingRoot"}, judgeAccess),
	}
}

func withChanges(q Question) Question {
	q.Changes = true
	return q
}

// Results of a judge function: the verdict and the sentence of an answer.
func holdsVerdict(answer string) (Verdict, string)        { return Holds, answer }
func contradictedVerdict(answer string) (Verdict, string) { return Contradicted, answer }
func unknownVerdict(answer string) (Verdict, string)      { return Unknown, answer }
