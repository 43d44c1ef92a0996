export const html = () => "";
