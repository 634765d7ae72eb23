package sshkeysecret

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

func privateKeyInvalid(secret *corev1.Secret, err error) recorder.Event {
	return recorder.Warning(secret, nil, "PrivateKeyInvalid", "ReadPrivateKey",
		err.Error()+". "+FixHint(secret.Namespace))
}

func previousKeyInvalid(secret *corev1.Secret, err error) recorder.Event {
	return recorder.Warning(secret, nil, "PreviousPrivateKeyInvalid", "ReadPrivateKey",
		err.Error()+". The operator cannot use the previous key to add the current key on hosts that reject it. Correct key "+SecretPreviousKey+", or remove it.")
}

func userDataCreated(secret, userData *corev1.Secret) recorder.Event {
	return recorder.Normal(secret, userData, "UserDataCreated", "UpdateUserData",
		userDataRef(userData)+" was created: new Windows Machines with this user data accept the key.")
}

func userDataUpdated(secret, userData *corev1.Secret) recorder.Event {
	return recorder.Normal(secret, userData, "UserDataUpdated", "UpdateUserData",
		userDataRef(userData)+" was updated: new Windows Machines accept the current key. Existing Machines are not changed.")
}

func userDataRestored(secret, userData *corev1.Secret, what string) recorder.Event {
	return recorder.Warning(secret, userData, "UserDataRestored", "UpdateUserData",
		userDataRef(userData)+" was "+what+
			"; the operator restored it. For other user data, create a Secret with another name.")
}

func userDataRefused(secret, userData *corev1.Secret, err error) recorder.Event {
	return recorder.Warning(secret, userData, "UserDataUpdateFailed", "UpdateUserData",
		userDataRef(userData)+" cannot be corrected: "+err.Error()+". Delete the Secret; the operator creates it again.")
}

func userDataRef(userData *corev1.Secret) string {
	return "Key " + userdata.SecretKey + " of Secret " + userData.Namespace + "/" + userData.Name
}
