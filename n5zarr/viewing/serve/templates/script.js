for (const button of document.querySelectorAll("button")) {
  const code = button.parentNode.querySelector("pre");
  button.hidden = false;
  button.onclick = async () => {
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "copied";
    } catch {  // browsers allow it to pages of this machine and of https
      button.textContent = "selected";
    }
  };
}
